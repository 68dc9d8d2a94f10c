"""The page of a fusion in which nothing was matched: classes have names, and a table of them is all there is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.digits import decimals_of, spell
from modelweld.inputs.local_model import LocalModel
from modelweld.report.limits import LISTED

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{css_hash}'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<header><p class="brand">modelweld <span>fusion report</span></p><h1>{headline}</h1><p class="lead">{lead}</p></header>
<main><section><div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table></div>
<p class="hint">{note}</p></section></main>
</body>
</html>
"""


def class_page(fusion: Fusion, title: str, css: str, css_hash: str) -> str:
    """One row per class: its rows at each site and in all, and the mean of each feature over all of them."""
    fused = fusion.fused()
    classes = [str(name) for name in fused.coordinates["class"]]
    features, units = _features(fusion, fused)
    sites, columns = fusion.sites[:LISTED], features[:LISTED]
    own = [_counts(model.coordinates["class"], model.arrays["counts"]) for model in fusion.models[:LISTED]]
    heads = ["class", "rows", *sites, *(f"{name} ({units[name]})" if name in units else name for name in columns)]
    rows = []
    totals, averages = np.asarray(fused.arrays["counts"]), np.asarray(fused.arrays["means"])
    decimals = [decimals_of(own) for own in averages.T[:LISTED]]
    for name, total, means in zip(classes, totals, averages, strict=True):
        held = [f"{counts[name]:,.0f}" if name in counts else "–" for counts in own]
        rows.append([name, f"{total:,.0f}", *held, *(spell(x, n) for x, n in zip(means, decimals, strict=False))])
    left = [(len(fusion.sites) - len(sites), "sites"), (len(features) - len(columns), "features")]
    note = "".join(f"{number:,} more {what} are not listed. " for number, what in left if number)
    return PAGE.format(
        title=escape(title),
        css=css,
        css_hash=css_hash,
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


def _features(fusion: Fusion, fused: LocalModel) -> tuple[list[str], dict[str, str]]:
    """Names of features, or their numbers, and units that sites state."""
    width = np.shape(fused.arrays["means"])[1]
    named = fused.coordinates.get("feature", [f"feature {d}" for d in range(width)])
    units = fusion.models[0].facts.get("units", {})
    return list(named), dict(units) if isinstance(units, dict) else {}
