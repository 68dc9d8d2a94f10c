"""A model card: what was fused, from whom, how sure that is and what it is not good for, as model hubs show it."""

from __future__ import annotations

import modelweld
from modelweld.errors import some
from modelweld.report.numbers import numbers_of
from modelweld.report.page import headline, lead

LIMITS = (
    "Made from parameters: no row of the sites' data was seen here, and none can be looked up again.",
    "It describes what sites sent. Where a site's data are wrong or of other people, so is its part of the model.",
    "Groups are matched by likeness. That two sites share one is probable, not certain; none of it is causal.",
)


def card_of(fusion: modelweld.Fusion, licence: str = "other") -> str:
    """The card of a fused model, Markdown with a head that model hubs read.

    Parameters
    ----------
    fusion : Fusion
        What the model was made of.
    licence : str
        By which it may be used, as hubs spell it ("mit", "cc-by-4.0"): sites decide.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.mixture import mixture
    >>> sites = [mixture([[0.0], [x]], [[1.0], [1.0]], [30, 10], counted=True) for x in (9.0, 9.5)]
    >>> print(card_of(modelweld.fuse(sites), "mit").partition("tags")[0].strip())
    ---
    library_name: sklearn
    license: mit
    """
    found, classes = numbers_of(fusion, draws=False), [model.facts.get("class", "") for model in fusion._fit.models]
    library = str(classes[0]).partition(".")[0] if len(set(classes)) == 1 and classes[0] else "sklearn"
    table = fusion.table(next(iter(fusion.matchings)))
    heads, rows = table.cells()
    sure = [] if found["verdict"] is None else [found["verdict"]["sentence"]]
    sure += [line for one in found["sets"] if one["certainty"] for line in one["certainty"]["sentences"]]
    doubts = [alert["text"] for one in found["sets"] for alert in one["alerts"]]
    lines = [
        *("---", f"library_name: {library}", f"license: {licence}", "tags: [modelweld, model-fusion]", "---"),
        *(f"# {headline(found)}", "", lead(found), "", f"Sites: {some(fusion.sites)}.", ""),
        *(
            "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
            for row in (heads, ["---"] * len(heads), *rows)
        ),
        *("", *table.notes(), "", "## How sure", "", *(f"- {line}" for line in sure), ""),
        *("## What was found odd", "", *(f"- {doubt}" for doubt in doubts or ["Nothing."]), ""),
        *("## Limits", "", *(f"- {limit}" for limit in LIMITS), "", f"Made with modelweld {modelweld.__version__}."),
    ]
    return "\n".join(lines) + "\n"
