"""One self-contained page of the paper's studies: claims, what was asked, figures and tables, from results alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from study import FIGURE_FOLDER, RESULTS, cell, held

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 72rem; font: 15px/1.5 system-ui, sans-serif; }
section { border-top: 1px solid #8886; margin-top: 2rem; } p { max-width: 50rem; } nav a { margin-right: 1rem; }
table { border-collapse: collapse; font-size: .88rem; } table, figure { display: block; margin: 0; overflow-x: auto; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td.n { text-align: right; white-space: nowrap; } img { background: #fff; max-width: 100%; }
"""


def page(folders: Sequence[Path]) -> str:
    """The page of studies whose results lie in these folders."""
    records = [(json.loads((folder / RESULTS).read_text()), folder) for folder in folders]
    links = " ".join(f'<a href="#{escape(r["study"])}">{escape(r["title"])}</a>' for r, _ in records)
    body = "\n".join(section(record, folder / FIGURE_FOLDER) for record, folder in records)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's studies</title><style>{STYLE}</style></head>
<body><header><h1>The paper's studies, reproduced</h1>
<p>Yurochkin et al., <i>Statistical Model Aggregation via Parameter Matching</i>, NeurIPS 2019,
beside modelweld and rivals on the same data.</p><nav aria-label="studies">{links}</nav></header>
<main>{claims([record for record, _ in records])}{body}</main></body></html>
"""


def claims(records: Sequence[Mapping[str, Any]]) -> str:
    """What is claimed, where, whether it holds and by how much, before all else; a quick run claims nothing."""
    rows = [
        [c["text"], r["study"], held(c["holds"], "no"), c["found"], c.get("n") or f"{len(r['results'])} tasks"]
        for r in records
        for c in r["claims"]
    ]
    columns = ["claim", "where", "holds", "by how much", "on how many"]
    title = "What is claimed, and whether it holds"
    return table({"title": title, "columns": columns, "rows": rows, "note": ""}) if rows else ""


def section(record: Mapping[str, Any], folder: Path) -> str:
    """One study, its figures from this folder."""
    quick = " This was the quick version: too few repeats to judge by." if record["quick"] else ""
    minutes = sum(r.get("cpu", 0) for r in record["results"].values()) / 60
    spent = f"{len(record['results'])} tasks, {minutes:.1f} CPU minutes"
    return (
        f'<section id="{escape(record["study"])}"><h2>{escape(record["title"])}</h2><p>{escape(record["question"])}</p>'
        f"<p>modelweld {escape(record['modelweld'])}, {spent}.{quick}</p>"
        f"{''.join(figure(f, folder) for f in record['figures'])}{''.join(map(table, record['tables']))}</section>"
    )


def table(content: Mapping[str, Any]) -> str:
    """One table."""
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in content["columns"])
    rows = "".join(f"<tr>{''.join(cells(row))}</tr>" for row in content["rows"])
    return (
        f"<h3>{escape(content['title'])}</h3><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{escape(content['note'])}</p>"
    )


def cells(row: Sequence[str | float | None]) -> Iterator[str]:
    """The cells of a row; the first one names it."""
    first, *others = row
    yield f'<th scope="row">{escape(cell(first))}</th>'
    for value in others:
        yield f'<td class="{"" if isinstance(value, str) else "n"}">{escape(cell(value))}</td>'


def figure(content: Mapping[str, str], folder: Path) -> str:
    """A drawing, put into the page itself."""
    caption, drawing = escape(content["caption"]), base64.b64encode((folder / content["file"]).read_bytes()).decode()
    image = f'<img alt="{caption}" src="data:image/svg+xml;base64,{drawing}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
