"""What things are called, and how many there are."""

from __future__ import annotations


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
