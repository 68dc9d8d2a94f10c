"""The words of the page: sentences, key figures and lists, as HTML or to be escaped where they are put."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape

from modelweld.kinds import kind_named
from modelweld.report.text import LISTED, Content, Number, several
from modelweld.report.verdicts import CAVEAT


def headline(found: Content) -> str:
    """How many groups there are at how many sites."""
    parts = [f"{one['K']:,} {_word(one, one['K'])}" for one in found["sets"]]
    return f"{' and '.join(parts)} in the {_models(found)} of {several(found['J'], 'site')}"


def groups_title(found: Content) -> str:
    """The heading of the table of groups."""
    return _sentence(found["sets"][0]["groups"]["word"]) + "s"


def _word(one: Content, number: int) -> str:
    """What a set's members are called: groups, states, units of a layer."""
    word = one["groups"]["word"]
    return (f"{one['name']} {word}" if one["name"][-1:].isdigit() else word) + "s" * (number != 1)


def _models(found: Content) -> str:
    kind = kind_named(found["kind"])
    return "models" if kind is None else kind.plural


def lead(found: Content) -> str:
    """What was fused, and how it went."""
    sent = " and ".join(f"{one['N']:,} {_word(one, one['N'])}" for one in found["sets"])
    groups = found["sets"][0]["groups"]
    points = sum(n or 0.0 for n in groups["points"] or []) + (groups["aside"] or 0.0)
    behind = f", {points:,.0f} {groups['counted']}" if groups["points"] and not groups["shares"] else ""
    end = (
        "The fit converged."
        if found["converged"]
        else "The fit did not converge: give it more sweeps, search=Search(max_sweeps=...)."
    )
    return (
        f"{_sentence(_models(found))} that were trained apart were fused from their parameters alone: the sites sent "
        f"{sent}{behind}. {end}"
    )


def figures(found: Content) -> str:
    """The key figures, each with its name."""
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(x)}</dd></div>" for name, x in _key_figures(found))


def _key_figures(found: Content) -> list[tuple[str, str]]:
    sets = found["sets"]
    doubtful = [one["doubtful_number"] for one in sets if one["doubtful_number"] is not None]
    warned = {site for one in sets for site in one["warned"]} | set(_strangers(found))
    aside = sum(one["set_aside_number"]["all"] for one in sets)
    word = groups_title(found).lower()
    figures = [
        ("sites", f"{found['J']:,}"),
        (f"{word}, fused", f"{sum(one['K'] for one in sets):,}"),
        ("of these at several sites", f"{sum(one['shared'] for one in sets):,}"),
    ]
    if aside:
        figures.append(("excluded", f"{aside:,}"))
    if doubtful:
        figures.append((f"doubtful of {sum(one['N'] for one in sets):,} matches", f"{sum(doubtful):,}"))
    if warned or any(one["diagnostics"] is not None for one in sets):
        figures.append(("sites with a warning", f"{len(warned):,}"))
    return figures


def verdict(found: Content) -> str:
    """The test of shared structure: the answer first."""
    if found["verdict"] is None:
        lives = [one["time"]["sentence"] for one in found["sets"] if one["time"]]
        if lives:
            day = "The test of shared structure applies at one time: fusion.timeline.at(time).worth_merging()."
            return f'<p class="verdict">{escape(" ".join(lives))}</p><p class="hint">{escape(day)}</p>'
        return '<p class="verdict">Not computed: see the notes at the end.</p>'
    lines = [_sentence(found["verdict"]["sentence"])]
    if found["verdict"]["worth"]:
        lines.append(CAVEAT)
        if strangers := _strangers(found):
            more = f" and {len(strangers) - LISTED:,} more" if len(strangers) > LISTED else ""
            names = ", ".join(map(repr, strangers[:LISTED]))
            lines.append(f"There is no evidence that these sites share anything with the others: {names}{more}.")
    lines += [_sentence(line) for one in found["sets"] if one["certainty"] for line in one["certainty"]["sentences"]]
    first, *rest = lines
    return f'<p class="verdict">{escape(first)}</p>' + "".join(f'<p class="hint">{escape(line)}</p>' for line in rest)


def _strangers(found: Content) -> list[str]:
    """Sites that share nothing with the others, where others do."""
    return found["verdict"]["strangers"] if found["verdict"] and found["verdict"]["worth"] else []


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def per_set(found: Content, write: Callable[[Content, Content], str]) -> str:
    """The same for every set; the page shows that of one at a time."""
    parts = [write(one, found) for one in found["sets"]]
    return "\n".join(f'<div data-set="{i}">{part}</div>' for i, part in enumerate(parts) if part)


def why(one: Content, found: Content) -> str:
    """How the local parameters divide into shared, unshared and excluded, and what decides between these."""
    K, N, aside, word = one["K"], one["N"], one["set_aside_number"], one["groups"]["word"]
    alone = K - one["shared"]
    everywhere = sum(n == found["J"] for n in one["counts"][:K])
    lines = [
        f"{N:,} {_word(one, N)} of sites are matched to {K:,} fused ones.",
        f"{one['shared']:,} are found at several sites, {everywhere:,} of these at all; {alone:,} at one alone.",
    ]
    background = aside["all"] - aside["outliers"] - aside["artefacts"]
    if aside["all"]:
        parts = [
            (aside["outliers"], "gross outliers, of shifted sites, not seen or repeated, and not fitted"),
            (aside["artefacts"], f"fragments or mixtures of other {word}s"),
            (
                background,
                f"alone and more probably background than {word}s (probability {one['background_probability']:.2f})",
            ),
        ]
        listed = "; ".join(f"{n:,} {why}" for n, why in parts if n)
        lines.append(f"{aside['all']:,} are excluded, kept but not counted: {listed}.")
    if one["pieces_number"]:
        lines.append(f"{one['pieces_number']:,} times a site holds a {word} in several fragments.")
    if any(row["symbol"] == "σ" for row in one["fit"]["learned"]):
        lines.append(
            f"Two sites' {word}s are matched where the variation of {word}s from site to site (noise) explains "
            "their difference better than the variation between {word}s (spread), given the prior."
        )
    return bullets(lines)


def aside(one: Content, found: Content) -> str:
    """What was excluded, one by one."""
    fragments = ""
    if one["fragments"]:
        listed = bullets(one["fragments"])
        title = f"{_sentence(one['groups']['word'])}s in fragments at a site: {one['pieces_number']:,}"
        fragments = f"<details><summary>{escape(title)}</summary>{listed}</details>"
    if not one["set_aside_number"]["all"]:
        return fragments
    number = one["set_aside_number"]["all"]
    if not one["excluded"]:
        return f"<p>{number:,} excluded are too many to list: modelweld.notes.excluded(fusion).</p>{fragments}"
    rows = "".join(
        f'<tr><th scope="row">{escape(a["site"])}</th><td class="n">{a["row"]}</td><td>{escape(a["why"])}</td>'
        f'<td class="n">{"–" if a["probability"] is None else format(a["probability"], ".2f")}</td>'
        f'<td class="n">{"–" if a["nearest"] is None else a["nearest"]}</td></tr>'
        for a in one["excluded"]
    )
    heads = (
        '<thead><tr><th scope="col">Site</th><th scope="col" class="n">Nr there</th><th scope="col">Why: it</th>'
        '<th scope="col" class="n">Probability</th><th scope="col" class="n">Nearest</th></tr></thead>'
    )
    return (
        f"<details><summary>Excluded: {number:,}</summary>"
        f'<div class="scroll"><table>{heads}<tbody>{rows}</tbody></table></div></details>{fragments}'
    )


def hyperparameters(one: Content, found: Content) -> str:
    """Hyperparameters with the paper's symbols; those that differ by feature, in its unit."""
    rows = "".join(
        f'<tr><th scope="row">{escape(row["symbol"]) or "–"}</th><td class="n">{_values(row["value"], one)}</td>'
        f"<td>{escape(row['name'] + (' of ' + row['of'] if row['of'] else ''))}</td></tr>"
        for row in one["fit"]["learned"]
    )
    if not rows:
        return "<p>No hyperparameters were learned.</p>"
    heads = '<tr><th scope="col">Symbol</th><th scope="col" class="n">Value</th><th scope="col">Meaning</th></tr>'
    return (
        "<table><caption>Learned hyperparameters, in the features' units.</caption>"
        f"<thead>{heads}</thead><tbody>{rows}</tbody></table>"
    )


def _values(value: Number | list[Number], one: Content) -> str:
    """A number, or one for each column, with its name and unit; of many columns the first."""
    if not isinstance(value, list):
        return escape(_value(value))
    groups = one["groups"]
    units = dict(zip(groups["features"], groups["units"], strict=True))
    named = groups["features"] if len(value) == len(groups["features"]) == groups["columns"] else one["columns"]
    lines = [
        f"{escape(name)} {escape(_value(x))} {escape(units.get(name, ''))}".strip()
        for name, x in zip(named, value, strict=False)
    ]
    more = f"<br>… {len(value) - LISTED} more" if len(value) > LISTED else ""
    return "<br>".join(lines[:LISTED]) + more


def _value(value: Number) -> str:
    return "–" if value is None else f"{value:.4g}"


def settings(found: Content) -> str:
    """Settings; the families, prior and engine that were used; versions."""
    given = [f"{name.replace('_', ' ')} {_setting_words(x)}" for name, x in found["settings"].items() if x is not None]
    lines = [f"Settings: {'; '.join(given)}."] if given else []
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
