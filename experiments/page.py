"""One self-contained page of the paper's studies: what was asked, claims, tables and figures, from their results alone.

python experiments/page.py reproduced/simulated reproduced/mocap --out page.html    # folders with results.json
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from study import FIGURE_FOLDER, RESULTS, cell, held

STYLE = """
:root { --paper: #fff; --ink: #1b2126; --muted: #5b666e; --line: #dde2e5; --accent: #0a6a94; --miss: #a85400; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #13171a; --ink: #e5e9eb; --muted: #9aa6ae; --line: #2d353a; --accent: #5db9e3; --miss: #f0a45f; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.75rem; font-weight: 600; } h2 { font-size: 1.35rem; font-weight: 600; margin: 0; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.6rem 0 .4rem; }
p, li { max-width: 50rem; } p { margin: .4rem 0; }
a { color: var(--accent); } nav a { margin-right: 1rem; }
section { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1.4rem; }
.muted, figcaption { color: var(--muted); font-size: .88rem; }
.claims { list-style: none; padding: 0; } .claims li { padding-left: 3.2rem; text-indent: -3.2rem; margin: .25rem 0; }
.claims b { display: inline-block; width: 3.2rem; text-indent: 0; font-weight: 600; color: var(--accent); }
.claims .miss b { color: var(--miss); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--muted); font-weight: 500; } tbody th { font-weight: 500; }
td.n { text-align: right; white-space: nowrap; }
figure { margin: 1.2rem 0; } figure > div { background: #fff; border-radius: 6px; padding: .5rem; overflow-x: auto; }
figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
@media print { section { break-before: page; } body { max-width: none; } }
"""


def page(records: Sequence[tuple[Mapping[str, Any], Path]]) -> str:
    """The page of several studies, each given as what `results.json` holds and the folder it lies in."""
    links = " ".join(f'<a href="#{escape(r["study"])}">{escape(r["title"])}</a>' for r, _ in records)
    body = "\n".join(section(record, folder) for record, folder in records)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's studies</title><style>{STYLE}</style></head>
<body><header><h1>The paper's studies, reproduced</h1>
<p class="muted">Yurochkin et al., <i>Statistical Model Aggregation via Parameter Matching</i>, NeurIPS 2019,
beside modelweld and rivals on the same data.</p><nav aria-label="studies">{links}</nav></header>
<main>{overview(records)}{body}</main></body></html>
"""


def overview(records: Sequence[tuple[Mapping[str, Any], Path]]) -> str:
    """What is claimed, where, whether it holds and by how much, before all else; a quick run claims nothing."""
    rows = [
        [
            claim["text"],
            record["study"],
            held(claim["holds"], "no"),
            claim["found"],
            claim.get("n") or f"{len(record['results'])} tasks",
        ]
        for record, _ in records
        for claim in record["claims"]
    ]
    columns = ["claim", "where", "holds", "by how much", "on how many"]
    return (
        table({"title": "What is claimed, and whether it holds", "columns": columns, "rows": rows, "note": ""})
        if rows
        else ""
    )


def section(record: Mapping[str, Any], folder: Path) -> str:
    """One study."""
    quick = " This was the quick version: too few repeats to judge by." if record["quick"] else ""
    parts = [
        f"<h2>{escape(record['title'])}</h2><p>{escape(record['question'])}</p>",
        f'<p class="muted">modelweld {escape(record["modelweld"])}, {len(record["results"])} tasks, '
        f"{sum(r.get('cpu', 0) for r in record['results'].values()) / 60:.1f} CPU minutes.{quick}</p>",
        claims(record["claims"]),
        *(figure(f, folder / FIGURE_FOLDER) for f in record["figures"]),
        *map(table, record["tables"]),
    ]
    return f'<section id="{escape(record["study"])}">{"".join(parts)}</section>'


def claims(items: Sequence[Mapping[str, Any]]) -> str:
    """What should hold, what was found."""
    lines = (
        f'<li class="{"hit" if c["holds"] else "miss"}"><b>{held(c["holds"], "no")}</b>{escape(c["text"])} '
        f'<span class="muted">Found: {escape(c["found"])}</span></li>'
        for c in items
    )
    return f'<ul class="claims">{"".join(lines)}</ul>' if items else ""


def table(content: Mapping[str, Any]) -> str:
    """One table."""
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in content["columns"])
    rows = "".join(f"<tr>{''.join(cells(row))}</tr>" for row in content["rows"])
    note = f'<p class="muted">{escape(content["note"])}</p>' if content["note"] else ""
    return (
        f'<h3>{escape(content["title"])}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def cells(row: Sequence[str | float | None]) -> Iterator[str]:
    """The cells of a row; the first one names it."""
    first, *others = row
    yield f'<th scope="row">{escape(cell(first))}</th>'
    for value in others:
        yield f'<td class="{"" if isinstance(value, str) else "n"}">{escape(cell(value))}</td>'


def figure(content: Mapping[str, str], folder: Path) -> str:
    """A drawing, put into the page itself."""
    caption = escape(content["caption"])
    drawing = (folder / content["file"]).read_text()
    drawing = apart(drawing[drawing.index("<svg") :], Path(content["file"]).stem)
    return f'<figure><div role="img" aria-label="{caption}">{drawing}</div><figcaption>{caption}</figcaption></figure>'


def apart(drawing: str, name: str) -> str:
    """An SVG whose identifiers cannot meet those of another on the same page."""
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    return re.sub(r"url\(#", f"url(#{name}-", drawing)


def main() -> None:
    """Make the page from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with results.json")
    parser.add_argument("--out", type=Path, default=Path("reproduced/page.html"))
    options = parser.parse_args()
    records = [(json.loads((folder / RESULTS).read_text()), folder) for folder in options.folders]
    unfinished = options.out.with_suffix(".unfinished")
    unfinished.write_text(page(records), encoding="utf-8")
    unfinished.replace(options.out)


if __name__ == "__main__":
    main()
