"""The numbers of a fusion as one HTML file that needs nothing else: no network, no library, no server.

Words and key figures are written here; figures and tables are drawn by `figures.js` and `page.js` from the same
numbers, which the file carries as JSON. Nothing a site sends can become markup or code: text is escaped here, set as
text there, and the page's content security policy runs the one script whose hash it names and loads nothing.

The words of the page: sentences, key figures and lists, as HTML or to be escaped where they are put.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template

import numpy as np
from numpy.typing import ArrayLike

import modelweld
from modelweld.errors import InputError
from modelweld.files.limits import check_free, naming, whole_file
from modelweld.inputs.notebook import decimals_of, spell
from modelweld.kinds import kind_named
from modelweld.report.numbers import numbers_of
from modelweld.report.text import FEW, LISTED, Content, Number, add_units, are_few, several
from modelweld.report.verdicts import CAVEAT

PAGES = ("", ".html", ".htm")
"""How the name of a page may end."""

TITLE = "Fusion report"
"""Of a page that was given none: then its heading is what was found."""

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tabs and line breaks, what turns the direction of text, and halves of characters. Joiners,
which Persian words and others have, are not among them."""


def check_page(path: str | PathLike[str], *, force: bool) -> Path:
    """The path, if a page may be written there and is called what it is.

    Examples
    --------
    >>> check_page("fusion.png", force=False)
    Traceback (most recent call last):
        ...
    modelweld.errors.InputError: 'fusion.png': the report is an HTML page. Call it 'fusion.html'; fusion.plot()...
    """
    where = Path(path)
    if where.suffix.lower() not in PAGES:
        with naming(where):
            name = where.with_suffix(".html").name
            raise InputError(
                f"the report is an HTML page. Call it {name!r}; fusion.plot().savefig(...) draws pictures."
            )
    return check_free(where, force=force)


def write_report(
    fusion: modelweld.Fusion,
    path: str | PathLike[str],
    title: str = TITLE,
    *,
    force: bool = False,
    draws: bool = True,
    allow_small: bool = False,
) -> Path:
    """Write a fusion's report, one self-contained HTML file.

    Parameters
    ----------
    fusion : Fusion
        What to show.
    path : str or path
        Where to write: a name that ends in .html.
    title : str
        Of the page.
    force : bool
        Whether to replace a file that is there already.
    draws : bool
        As in `numbers_of`: whether confidences and intervals are from draws.
    allow_small : bool
        Whether to show numbers of points below five, and what groups of so few are like.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import modelweld, tempfile
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(fusion, folder + "/report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    with whole_file(check_page(path, force=force), force=force) as part:
        text = text_of(fusion, title, draws=draws, allow_small=allow_small)
        part.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def text_of(fusion: modelweld.Fusion, title: str = TITLE, *, draws: bool = True, allow_small: bool = False) -> str:
    """The page of a fusion; where nothing was matched, because classes have names, it is a table of these."""
    if not fusion.matchings:
        return legible(class_page(fusion, title, allow_small))
    return legible(page_of(numbers_of(fusion, draws=draws, allow_small=allow_small), title))


def legible(page: str) -> str:
    r"""A page without what turns text round, or steers a terminal, in names that sites gave to their features.

    Examples
    --------
    >>> legible("age\u202egnp.exe, \x1b[2Jnoon")
    'age\ufffdgnp.exe, \ufffd[2Jnoon'
    """
    return OBEYED.sub("\ufffd", page)


def page_of(found: Content, title: str = TITLE) -> str:
    """The numbers of `modelweld.report.numbers_of` as HTML.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.report import numbers_of
    >>> fusion = modelweld.fuse([[[0.0], [5.0]], [[0.1], [5.1]], [[0.2], [4.9]]])
    >>> f"{fusion.K} groups" in page_of(numbers_of(fusion))
    True
    """
    html, css = _part("page.html"), _part("page.css")
    js = _part("groups.js") + _part("figures.js") + _part("time.js") + _part("page.js")
    return Template(html).substitute(
        title=escape(title),
        css=css,
        js=js,
        css_hash=_hash(css),
        js_hash=_hash(js),
        json=embed(found),
        J=f"{found['J']:,}",
        heading=heading(title, headline(found)),
        lead=escape(lead(found)),
        word=escape(found["sets"][0]["groups"]["word"]),
        groups_title=escape(_sentence(found["sets"][0]["groups"]["word"]) + "s"),
        figures=figures(found),
        verdict=verdict(found),
        why=per_set(found, why),
        aside=per_set(found, aside),
        learned=per_set(found, hyperparameters),
        settings=settings(found),
        notes=bullets(found["notes"]),
    )


def embed(found: Mapping[str, object]) -> str:
    r"""JSON that may stand in a script element: no text in it can end the element or begin a comment.

    Examples
    --------
    >>> embed({"site": "</script>"})
    '{"site":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _part(name: str) -> str:
    return (files("modelweld") / "report" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names it."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def class_page(fusion: modelweld.Fusion, title: str, allow_small: bool = False) -> str:
    """One row per class: its rows at each site and in all, and the mean of each feature over all of them."""
    fused, css = fusion.parameters(), _part("page.css")
    classes = [str(name) for name in fused.coordinates["class"]]
    totals, averages = np.asarray(fused.arrays["counts"]), np.asarray(fused.arrays["means"])
    features = list(fused.coordinates.get("feature", [f"feature {d}" for d in range(averages.shape[1])]))
    sites, columns = fusion.sites[:LISTED], features[:LISTED]
    own = [_counts(model.coordinates["class"], model.arrays["counts"]) for model in fusion._fit.models[:LISTED]]
    heads = ["class", "rows", *sites, *add_units(fusion, columns)]
    rows = []
    decimals = [decimals_of(own) for own in averages.T[:LISTED]]
    for name, total, means in zip(classes, totals, averages, strict=True):
        hidden = not allow_small and bool(are_few(total))
        values = [FEW if hidden else spell(x, n) for x, n in zip(means, decimals, strict=False)]
        held = [_rows(counts[name], allow_small) if name in counts else "–" for counts in own]
        rows.append([name, _rows(total, allow_small), *held, *values])
    left = [(len(fusion.sites) - len(sites), "sites"), (len(features) - len(columns), "features")]
    note = "".join(f"{number:,} more {what} are not listed. " for number, what in left if number)
    return Template(_part("classes.html")).substitute(
        title=escape(title),
        css=css,
        css_hash=_hash(css),
        heading=heading(title, f"{len(classes)} classes in the models of {len(fusion.sites):,} sites"),
        lead="Classes have names, so nothing had to be matched, and no verdict is needed: rows were put together.",
        heads="".join(f"<th>{escape(head)}</th>" for head in heads),
        rows="\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows),
        note=escape(note + "Means are those of all sites' rows together; – where a site does not know a class."),
    )


def _rows(number: float, allow_small: bool) -> str:
    return FEW if not allow_small and are_few(np.asarray(number)) else f"{number:,.0f}"


def _counts(classes: Sequence[str], counts: ArrayLike) -> dict[str, float]:
    """Rows by class, of the classes that a site knows."""
    found = np.asarray(counts, dtype=np.float64).tolist()
    return {name: number for name, number in zip(classes, found, strict=True) if number > 0}


def heading(title: str, found: str) -> str:
    """The title, with what was found below it; or what was found."""
    if title == TITLE:
        return f"<h1>{escape(found)}</h1>"
    return f'<h1>{escape(title)}</h1><p class="headline">{escape(found)}</p>'


def headline(found: Content) -> str:
    """How many groups there are at how many sites."""
    parts = [f"{one['K']:,} {_word(one, one['K'])} ({one['shared']:,} shared)" for one in found["sets"]]
    return f"{' and '.join(parts)} in the {_models(found)} of {several(found['J'], 'site')}"


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
    shown = [n or 0.0 for n in groups["points"] or [] if n != FEW]
    more = "more than " if FEW in (groups["points"] or []) else ""
    points = f"{more}{sum(shown) + (groups['aside'] or 0.0):,.0f} {groups['counted']}"
    behind = f", {points}" if groups["points"] and not groups["shares"] else ""
    end = "converged" if found["converged"] else "did not converge: allow more sweeps, search=Search(max_sweeps=...)"
    return (
        f"{_sentence(_models(found))} that were trained apart were fused from their parameters alone: the sites sent "
        f"{sent}{behind}. The fit {end}."
    )


def figures(found: Content) -> str:
    """The key figures, each with its name."""
    sets = found["sets"]
    doubtful = [one["doubtful_number"] for one in sets if one["doubtful_number"] is not None]
    warned = {site for one in sets for site in one["warned"]} | set(_strangers(found))
    aside = sum(one["set_aside_number"]["all"] for one in sets)
    figures = [
        ("sites", f"{found['J']:,}"),
        (f"{sets[0]['groups']['word'].lower()}s, fused", f"{sum(one['K'] for one in sets):,}"),
        ("of these at several sites", f"{sum(one['shared'] for one in sets):,}"),
    ]
    if aside:
        figures.append(("excluded", f"{aside:,}"))
    if doubtful:
        figures.append((f"doubtful of {sum(one['N'] for one in sets):,} matches", f"{sum(doubtful):,}"))
    if warned or any(one["judged"] for one in sets):
        figures.append(("sites with a warning", f"{len(warned):,}"))
    elif any(one["diagnostics"] is not None for one in sets):
        figures.append(("sites with a warning: too few sites to judge any", "–"))
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(x)}</dd></div>" for name, x in figures)


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
        f"Found at several sites: {one['shared']:,}; at every site: {everywhere:,}; at one alone: {alone:,}.",
    ]
    if aside["all"]:
        lines.append(f"{aside['all']:,} are excluded: gross outliers, of excluded sites, not seen, or repeated.")
    if one["pieces_number"]:
        lines.append(f"{one['pieces_number']:,} times a site holds a {word} in several fragments.")
    if any(row["symbol"] == "σ" for row in one["fit"]["learned"]):
        between = f"better than the variation between {word}s (spread), given the prior"
        lines.append(
            f"Two sites' {word}s are matched where the variation from site to site (noise) explains them {between}."
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
        f'<tr><th scope="row">{escape(a["site"])}</th><td class="n">{a["row"]}</td>'
        f'<td class="n">{"–" if a["nearest"] is None else a["nearest"]}</td></tr>'
        for a in one["excluded"]
    )
    table = _table([("Site", ""), ("No. at site", NUMBER), ("Nearest", NUMBER)], rows)
    return f'<details><summary>Excluded: {number:,}</summary><div class="scroll">{table}</div></details>{fragments}'


NUMBER = ' class="n"'
"""Of a column of numbers."""


def _table(heads: Iterable[tuple[str, str]], rows: str, caption: str = "") -> str:
    """A table of rows in HTML under these heads, each with its attributes."""
    cells = "".join(f'<th scope="col"{kind}>{head}</th>' for head, kind in heads)
    return f"<table>{caption}<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>"


def hyperparameters(one: Content, found: Content) -> str:
    """Hyperparameters with the paper's symbols; those that differ by feature, in its unit."""
    rows = "".join(
        f'<tr><th scope="row">{escape(row["symbol"]) or "–"}</th><td class="n">{_values(row["value"], one)}</td>'
        f"<td>{escape(row['name'] + (' of ' + row['of'] if row['of'] else ''))}</td></tr>"
        for row in one["fit"]["learned"]
    )
    if not rows:
        return "<p>No hyperparameters were learned.</p>"
    caption = "<caption>Learned hyperparameters, in the features' units.</caption>"
    return _table([("Symbol", ""), ("Value", NUMBER), ("Meaning", "")], rows, caption)


def _values(value: Number | list[Number], one: Content) -> str:
    """A number, or one for each column, with its name and unit; of many columns the first."""
    if not isinstance(value, list):
        return "–" if value is None else f"{value:.4g}"
    groups = one["groups"]
    units = dict(zip(groups["features"], groups["units"], strict=True))
    named = groups["features"] if len(value) == len(groups["features"]) == groups["columns"] else one["columns"]
    lines = [
        f"{escape(name)} {_values(x, one)} {escape(units.get(name, ''))}".strip()
        for name, x in zip(named, value, strict=False)
    ]
    more = f"<br>… {len(value) - LISTED} more" if len(value) > LISTED else ""
    return "<br>".join(lines[:LISTED]) + more


def settings(found: Content) -> str:
    """Settings; the families, prior and engine that were used; versions."""
    given = [f"{name.replace('_', ' ')} {_setting_words(x)}" for name, x in found["settings"].items() if x is not None]
    lines = [f"Settings: {'; '.join(given)}."] if given else []
    for one in found["sets"]:
        fit = one["fit"]
        shapes = [f"{f['family']} ({f['shape']})" if f["shape"] else f["family"] for f in fit["families"]]
        named = zip(shapes, fit["families"], strict=True)
        families = ", ".join(f"{shape} for {' and '.join(f['arrays'])}" for shape, f in named)
        lines.append(
            f"{_sentence(one['name'])}: {families or 'no family'}; prior {fit['prior'] or 'none'}; engine "
            f"{fit['engine']}; {several(fit['sweeps'], 'sweep')}, {'' if fit['converged'] else 'not '}converged; "
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
