"""The words of the page: sentences, key figures and lists, as HTML or to be escaped where they are put."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape

from modelweld.kinds import kind_named
from modelweld.report.contents import Number, Report, SetNumbers
from modelweld.report.text import several
from modelweld.report.verdicts import CAVEAT

MOST_ASIDE = 100
"""Parameters set aside that are listed on the page; all are in the JSON."""

MOST_STRANGERS = 8
"""Sites that share nothing which are named; all are in the JSON."""


def headline(found: Report) -> str:
    """How many local parameters became how many global ones."""
    parts = [f"{several(one['K'], 'global ' + one['name'])} from {one['N']:,} local" for one in found["sets"]]
    return f"{several(found['J'], 'site')}: {'; '.join(parts)}"


def lead(found: Report) -> str:
    """What this page is about."""
    kind = kind_named(found["kind"])
    what = "models" if kind is None else kind.plural
    end = "The fit converged." if found["converged"] else "The fit did not converge: give it more sweeps (max_sweeps)."
    return f"{what[0].upper() + what[1:]} that were trained apart, fused from their parameters alone. {end}"


def figures(found: Report) -> str:
    """The key figures, each with its name."""
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(x)}</dd></div>" for name, x in _key_figures(found))


def _key_figures(found: Report) -> list[tuple[str, str]]:
    sets = found["sets"]
    doubtful = [one["doubtful_number"] for one in sets if one["doubtful_number"] is not None]
    warned = {j for one in sets for j, d in enumerate(one["diagnostics"] or []) if d["warning"]}
    figures = [
        ("sites", f"{found['J']:,}"),
        ("local parameters", f"{sum(one['N'] for one in sets):,}"),
        ("global parameters", f"{sum(one['K'] for one in sets):,}"),
        ("held by several sites", f"{sum(one['shared'] for one in sets):,}"),
        ("set aside", f"{sum(one['set_aside_number']['all'] for one in sets):,}"),
    ]
    if doubtful:
        figures.append(("doubtful matches", f"{sum(doubtful):,}"))
    if any(one["diagnostics"] is not None for one in sets):
        figures.append(("sites with a warning", f"{len(warned):,}"))
    if found["verdict"] and found["verdict"]["p_value"] is not None:
        answer = {True: "yes", False: "no", None: "cannot be said"}[found["verdict"]["worth"]]
        figures.append(("worth merging", f"{answer} (p = {found['verdict']['p_value']:.2g})"))
    if found["verdict"] and found["verdict"]["gain"] is not None:
        figures.append(("gain of fusing, nats", f"{found['verdict']['gain']:,.0f}"))
    return figures


def verdict(found: Report) -> str:
    """Whether fusing was worth it."""
    if found["verdict"] is None:
        return "<p>Not computed: see the notes at the end.</p>"
    lines = [_sentence(found["verdict"]["sentence"])]
    strangers = found["verdict"]["strangers"]
    if found["verdict"]["worth"]:
        lines.append(CAVEAT)
        if strangers:
            more = f" and {len(strangers) - MOST_STRANGERS:,} more" if len(strangers) > MOST_STRANGERS else ""
            names = ", ".join(map(repr, strangers[:MOST_STRANGERS]))
            lines.append(f"Nothing says that these sites share anything with the others: {names}{more}.")
    lines += [_sentence(line) for one in found["sets"] if one["certainty"] for line in one["certainty"]["sentences"]]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def per_set(found: Report, write: Callable[[SetNumbers, Report], str]) -> str:
    """The same for every set; the page shows that of one at a time."""
    parts = [write(one, found) for one in found["sets"]]
    return "\n".join(f'<div data-set="{i}">{part}</div>' for i, part in enumerate(parts) if part)


def why(one: SetNumbers, found: Report) -> str:
    """How the local parameters divide into shared, unshared and set aside, and what decides between these."""
    K, N, aside = one["K"], one["N"], one["set_aside_number"]
    alone = K - one["shared"]
    everywhere = sum(n == found["J"] for n in one["counts"][:K])
    lines = [
        f"{N:,} local parameters are taken for noisy copies of {K:,} global ones (atoms).",
        f"{one['shared']:,} atoms are held by several sites, {everywhere:,} of these by all; {alone:,} by one alone.",
    ]
    junk = aside["all"] - aside["outliers"] - aside["artefacts"]
    if aside["all"]:
        parts = [
            (aside["outliers"], "gross outliers, of shifted sites, not seen or repeated, and not fitted"),
            (aside["artefacts"], "pieces or mixtures of other atoms"),
            (junk, f"alone and more probably junk than atoms (probability {one['junk_probability']:.2f})"),
        ]
        words = "; ".join(f"{n:,} {why}" for n, why in parts if n)
        lines.append(f"{aside['all']:,} are set aside, kept but not counted: {words}.")
    if one["pieces_number"]:
        lines.append(f"{one['pieces_number']:,} times a site holds an atom in several pieces.")
    by = {row["symbol"]: row["value"] for row in one["fit"]["learned"]}
    if len(one["fit"]["families"]) == 1 and "σ" in by:
        lines.append(
            f"Values are matched to one atom where the learned noise, of deviation σ = {_value(by['σ'])}, explains "
            f"their differences better than the spread of atoms, σ₀ = {_value(by['σ₀'])}, and the prior allows it."
        )
    return bullets(lines)


def aside(one: SetNumbers, found: Report) -> str:
    """What was set aside, one by one."""
    reasons = "".join(f'<p class="warning">{escape(reason)}</p>' for reason in one["reasons"][:MOST_ASIDE])
    pieces = ""
    if one["pieces"]:
        listed = bullets(one["pieces"][:MOST_ASIDE])
        pieces = f"<details><summary>Atoms in pieces at a site: {one['pieces_number']:,}</summary>{listed}</details>"
    if not one["set_aside_number"]["all"]:
        return reasons + pieces
    number = one["set_aside_number"]["all"]
    if not one["set_aside"]:
        return f"{reasons}<p>{number:,} set aside are too many to list: modelweld.notes.set_aside(fusion).</p>{pieces}"
    rows = "".join(
        f'<tr><th scope="row">{escape(a["site"])}</th><td class="n">{a["row"]}</td><td>{escape(a["why"])}</td>'
        f'<td class="n">{"–" if a["probability"] is None else format(a["probability"], ".2f")}</td>'
        f'<td class="n">{"–" if a["nearest"] is None else a["nearest"]}</td></tr>'
        for a in one["set_aside"][:MOST_ASIDE]
    )
    cut = "" if number <= MOST_ASIDE else f", {MOST_ASIDE} listed"
    heads = (
        '<thead><tr><th scope="col">Site</th><th scope="col" class="n">Parameter</th><th scope="col">Why: it</th>'
        '<th scope="col" class="n">Probability</th><th scope="col" class="n">Nearest atom</th></tr></thead>'
    )
    return (
        f"{reasons}<details><summary>Set aside: {number:,}{cut}</summary>"
        f'<div class="scroll"><table>{heads}<tbody>{rows}</tbody></table></div></details>{pieces}'
    )


def learned(one: SetNumbers, found: Report) -> str:
    """Hyperparameters with the paper's symbols."""
    rows = "".join(
        f'<tr><th scope="row">{escape(row["symbol"]) or "–"}</th><td class="n">{escape(_value(row["value"]))}</td>'
        f"<td>{escape(row['name'] + (' of ' + row['of'] if row['of'] else ''))}</td></tr>"
        for row in one["fit"]["learned"]
    )
    if not rows:
        return "<p>No hyperparameters were learned.</p>"
    heads = '<tr><th scope="col">Symbol</th><th scope="col" class="n">Value</th><th scope="col">Meaning</th></tr>'
    return (
        "<table><caption>Learned hyperparameters; a range is over columns.</caption>"
        f"<thead>{heads}</thead><tbody>{rows}</tbody></table>"
    )


def _value(value: Number | list[Number]) -> str:
    """A number, or the range of several."""
    if isinstance(value, list):
        known = [x for x in value if x is not None]
        return f"{min(known):.3g} to {max(known):.3g}" if known else "–"
    return "–" if value is None else f"{value:.4g}"


def settings(found: Report) -> str:
    """What was asked for; families, prior and engine that came of it; versions."""
    asked = [f"{name.replace('_', ' ')} {_setting_words(x)}" for name, x in found["settings"].items() if x is not None]
    lines = [f"Asked for: {'; '.join(asked)}."] if asked else []
    for one in found["sets"]:
        fit = one["fit"]
        families = ", ".join(
            f"{f['family']}{' (' + str(f['shape']) + ')' if f['shape'] else ''} for {' and '.join(f['arrays'])}"
            for f in fit["families"]
        )
        lines.append(
            f"{_sentence(one['name'])}: {families or 'no family'}; prior {fit['prior'] or 'none'}; engine "
            f"{fit['engine']}; {fit['sweeps']} sweeps, {'' if fit['converged'] else 'not '}converged; "
            f"{one['dimensions']:,} columns."
        )
    lines.append(", ".join(f"{name} {number}" for name, number in found["versions"].items()) + ".")
    return bullets(lines)


def _setting_words(setting: object) -> str:
    """A setting in words; families by array one after the other."""
    if isinstance(setting, Mapping):
        return ", ".join(f"{_setting_words(value)} for {name}" for name, value in setting.items())
    return {True: "yes", False: "no"}[setting] if isinstance(setting, bool) else str(setting)


def bullets(lines: Iterable[str]) -> str:
    """A list of sentences; nothing if there are none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
