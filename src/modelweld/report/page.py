"""The numbers of a fusion as one HTML file that needs nothing else: no network, no library, no server.

Words and key figures are written here; figures and tables are drawn by `figures.js` and `page.js` from the same
numbers, which the file carries as JSON. Nothing a site sends can become markup or code: text is escaped here, set as
text there, and the page's content security policy runs the one script whose hash it names and loads nothing.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from modelweld.kinds import kind_named
from modelweld.report.text import several

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

MOST_ASIDE = 100
"""Parameters set aside that are listed on the page; all are in the JSON."""


def write_report(fusion: Fusion, path: str | PathLike[str], title: str = "Fusion report") -> Path:
    """Write a fusion's report, one self-contained HTML file.

    Parameters
    ----------
    fusion : Fusion
        What to show.
    path : str or path
        Where to write; an existing file is replaced.
    title : str
        Of the page.

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
    from modelweld.report.numbers import numbers_of

    target = Path(path)
    target.write_text(page_of(numbers_of(fusion), title), encoding="utf-8", newline="\n")
    return target


def page_of(found: Mapping[str, Any], title: str = "Fusion report") -> str:
    """The numbers of `modelweld.report.numbers_of` as HTML.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.report import numbers_of
    >>> "2 global atoms" in page_of(numbers_of(modelweld.fuse([[[0.0], [5.0]], [[0.1], [5.1]], [[0.2], [4.9]]])))
    True
    """
    html, css = _part("page.html"), _part("page.css")
    js = _part("figures.js") + _part("page.js")
    return Template(html).substitute(
        title=escape(title),
        css=css,
        js=js,
        css_hash=_hash(css),
        js_hash=_hash(js),
        json=embedded(found),
        J=f"{found['J']:,}",
        headline=escape(_headline(found)),
        lead=escape(_lead(found)),
        figures="\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(x)}</dd></div>" for name, x in _figures(found)),
        verdict=_verdict(found),
        why=_per_set(found, _why),
        aside=_per_set(found, _aside),
        learned=_per_set(found, _learned),
        settings=_settings(found),
        notes=_list(found["notes"]),
    )


def embedded(found: Mapping[str, Any]) -> str:
    r"""JSON that may stand in a script element: no text in it can end the element or begin a comment.

    Examples
    --------
    >>> embedded({"site": "</script>"})
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


def _headline(found: Mapping[str, Any]) -> str:
    parts = [f"{several(one['K'], 'global ' + one['name'])} from {one['N']:,} local" for one in found["sets"]]
    return f"{several(found['J'], 'site')}: {'; '.join(parts)}"


def _lead(found: Mapping[str, Any]) -> str:
    kind = kind_named(found["kind"])
    what = "models" if kind is None else kind.plural
    end = "The fit converged." if found["converged"] else "The fit did not converge: give it more sweeps (max_sweeps)."
    return f"{what[0].upper() + what[1:]} that were trained apart, fused from their parameters alone. {end}"


def _figures(found: Mapping[str, Any]) -> list[tuple[str, str]]:
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
    if found["verdict"] and found["verdict"]["gain"] is not None:
        figures.append(("gain of fusing, nats", f"{found['verdict']['gain']:,.0f}"))
    return figures


def _verdict(found: Mapping[str, Any]) -> str:
    if found["verdict"] is None:
        return "<p>Not computed: see the notes at the end.</p>"
    return f"<p>{escape(_sentence(found['verdict']['sentence']))}</p>"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _per_set(found: Mapping[str, Any], write: Any) -> str:
    """The same for every set; the page shows that of one at a time."""
    parts = [write(one, found) for one in found["sets"]]
    return "\n".join(f'<div data-set="{i}">{part}</div>' for i, part in enumerate(parts) if part)


def _why(one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
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
            (aside["outliers"], "gross outliers or of shifted sites, not fitted"),
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
            f"Values are taken for copies of one atom if they differ by the noise learned, σ = {_value(by['σ'])}, "
            f"against a spread of atoms of σ₀ = {_value(by['σ₀'])}, and if so many sites sharing one are probable."
        )
    return _list(lines)


def _aside(one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """What was set aside, one by one."""
    reasons = "".join(f'<p class="warning">{escape(reason)}</p>' for reason in one["reasons"][:MOST_ASIDE])
    pieces = ""
    if one["pieces"]:
        listed = _list(one["pieces"][:MOST_ASIDE])
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


def _learned(one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
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


def _value(value: Any) -> str:
    """A number, or the range of several."""
    if isinstance(value, list):
        known = [x for x in value if x is not None]
        return f"{min(known):.3g} to {max(known):.3g}" if known else "–"
    return "–" if value is None else f"{value:.4g}"


def _settings(found: Mapping[str, Any]) -> str:
    """What was asked for; families, prior and engine that came of it; versions."""
    asked = [f"{name.replace('_', ' ')} {_asked(x)}" for name, x in found["settings"].items() if x is not None]
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
    return _list(lines)


def _asked(setting: Any) -> str:
    """A setting in words; families by array one after the other."""
    if isinstance(setting, Mapping):
        return ", ".join(f"{_asked(value)} for {name}" for name, value in setting.items())
    return {True: "yes", False: "no"}[setting] if isinstance(setting, bool) else str(setting)


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
