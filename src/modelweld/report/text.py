"""A report in a dozen lines, for a terminal."""

from __future__ import annotations

from modelweld.inputs.names import SHOWN
from modelweld.report.rounding import Content


def summary(found: Content) -> str:
    """The numbers of `modelweld.report.numbers_of` in a few plain lines.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.report import numbers_of
    >>> found = numbers_of(modelweld.fuse([[[0.0], [5.0]], [[0.1], [5.1]], [[0.2], [4.9]]]))
    >>> print(summary(found).splitlines()[0])
    3 sites: 6 local atoms, 2 global, 2 of these shared.
    """
    lines = [f"{several(found['J'], 'site')}: " + "; ".join(map(headline, found["sets"])) + "."]
    if not found["converged"]:
        lines.append("The fit did not converge: give it more sweeps (max_sweeps).")
    if found["verdict"]:
        lines.append(found["verdict"]["sentence"])
    for one in found["sets"]:
        if one["time"]:
            lines.append(one["time"]["sentence"])
        doubtful = one["doubtful_number"]
        if doubtful:
            lines.append(f"{doubtful:,} {one['name']} match{'es are' if doubtful > 1 else ' is'} doubtful.")
        lines += one["reasons"][:SHOWN]
        warnings = [d["warning"] for d in one["diagnostics"] or [] if d["warning"]]
        lines += warnings[:SHOWN]
        if len(warnings) > SHOWN:
            lines.append(f"... and {len(warnings) - SHOWN} more such warnings.")
    return "\n".join(lines)


def headline(one: Content) -> str:
    """How many of one set became how many, in words."""
    aside = one["set_aside_number"]["all"]
    return f"{several(one['N'], 'local ' + one['name'])}, {one['K']:,} global, {one['shared']:,} of these shared" + (
        f", {aside:,} set aside" if aside else ""
    )


def several(number: int, noun: str) -> str:
    """A number of things; sets with a number in their name, such as a network's "h0", are sets of units.

    Examples
    --------
    >>> several(1, "site"), several(2000, "site"), several(3, "h0")
    ('1 site', '2,000 sites', '3 h0 units')
    """
    name = f"{noun} unit" if noun[-1:].isdigit() else noun
    return f"{number:,} {name}{'s' * (number != 1)}"


def group_word(set_name: str) -> str:
    """What people call a member of a fused set: a group of points, a state, a topic, a unit of a network.

    Examples
    --------
    >>> [group_word(name) for name in ("component", "atom", "state", "h0")]
    ['group', 'group', 'state', 'unit']
    """
    return "unit" if set_name[-1:].isdigit() else {"component": "group", "atom": "group"}.get(set_name, set_name)
