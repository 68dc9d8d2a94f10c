"""The numbers of a fusion as one HTML file that needs nothing else: no network, no library, no server.

Words and key figures are written here; figures and tables are drawn by `figures.js` and `page.js` from the same
numbers, which the file carries as JSON. Nothing a site sends can become markup or code: text is escaped here, set as
text there, and the page's content security policy runs the one script whose hash it names and loads nothing.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.files.limits import check_free, naming, whole_file
from modelweld.inputs.notebook import decimals_of, spell
from modelweld.report import page_words as words
from modelweld.report.numbers import numbers_of
from modelweld.report.text import LISTED, Content, add_units

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

PAGES = ("", ".html", ".htm")
"""How the name of a page may end."""

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
    modelweld.errors.InputError: 'fusion.png': the report is an HTML page. Call it 'fusion.html'; pictures are drawn ...
    """
    where = Path(path)
    if where.suffix.lower() not in PAGES:
        with naming(where):
            raise InputError(
                f"the report is an HTML page. Call it {where.with_suffix('.html').name!r}; pictures are drawn by "
                "fusion.plot().savefig(...)."
            )
    return check_free(where, force=force)


def write_report(
    fusion: Fusion,
    path: str | PathLike[str],
    title: str = "Fusion report",
    *,
    force: bool = False,
    draws: bool = True,
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
        part.write_text(text_of(fusion, title, draws=draws), encoding="utf-8", newline="\n")
    return Path(path)


def text_of(fusion: Fusion, title: str = "Fusion report", *, draws: bool = True) -> str:
    """The page of a fusion; where nothing was matched, because classes have names, it is a table of these."""
    if not fusion.matchings:
        return legible(class_page(fusion, title))
    return legible(page_of(numbers_of(fusion, draws=draws), title))


def legible(page: str) -> str:
    r"""A page without what turns text round, or steers a terminal, in names that sites gave to their features.

    Examples
    --------
    >>> legible("age\u202egnp.exe, \x1b[2Jnoon")
    'age\ufffdgnp.exe, \ufffd[2Jnoon'
    """
    return OBEYED.sub("\ufffd", page)


def page_of(found: Content, title: str = "Fusion report") -> str:
    """The numbers of `modelweld.report.numbers_of` as HTML.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.report import numbers_of
    >>> fusion = modelweld.fuse([[[0.0], [5.0]], [[0.1], [5.1]], [[0.2], [4.9]]])
    >>> "2 groups in the models of 3 sites" in page_of(numbers_of(fusion))
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
        headline=escape(words.headline(found)),
        lead=escape(words.lead(found)),
        word=escape(found["sets"][0]["groups"]["word"]),
        groups_title=escape(words.groups_title(found)),
        figures=words.figures(found),
        verdict=words.verdict(found),
        why=words.per_set(found, words.why),
        aside=words.per_set(found, words.aside),
        learned=words.per_set(found, words.hyperparameters),
        settings=words.settings(found),
        notes=words.bullets(found["notes"]),
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


def class_page(fusion: Fusion, title: str) -> str:
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
        held = [f"{counts[name]:,.0f}" if name in counts else "–" for counts in own]
        rows.append([name, f"{total:,.0f}", *held, *(spell(x, n) for x, n in zip(means, decimals, strict=False))])
    left = [(len(fusion.sites) - len(sites), "sites"), (len(features) - len(columns), "features")]
    note = "".join(f"{number:,} more {what} are not listed. " for number, what in left if number)
    return Template(_part("classes.html")).substitute(
        title=escape(title),
        css=css,
        css_hash=_hash(css),
        headline=f"{len(classes)} classes in the models of {len(fusion.sites):,} sites",
        lead="Classes have names, so nothing had to be matched, and no verdict is needed: rows were put together.",
        heads="".join(f"<th>{escape(head)}</th>" for head in heads),
        rows="\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows),
        note=escape(note + "Means are those of all sites' rows together; – where a site does not know a class."),
    )


def _counts(classes: Sequence[str], counts: ArrayLike) -> dict[str, float]:
    """Rows by class, of the classes that a site knows."""
    found = np.asarray(counts, dtype=np.float64).tolist()
    return {name: number for name, number in zip(classes, found, strict=True) if number > 0}
