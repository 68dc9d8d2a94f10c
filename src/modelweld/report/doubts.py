"""What in a matching is not certain: doubtful matches, parameters set aside, atoms in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.diagnostics.notes import pieces, set_aside
from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, group_of_values
from modelweld.matching.result import Matching
from modelweld.posterior.conditional import conditional
from modelweld.posterior.confidence import SURE, Confidence, shares_at
from modelweld.report.limits import MOST_PAIRS, NAMED, NOTED
from modelweld.report.rounding import Content, exact, rounded

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


def stated_confidence(fusion: Fusion, name: str, notes: list[str], *, draws: bool = True) -> Confidence | None:
    """How sure each match is, from `draws` where these are affordable; None with a note if it cannot be said."""
    matching = fusion.uncrowded().matchings[name]
    if len(matching.stacked_labels) * len(matching.counts) > MOST_PAIRS:
        notes.append(
            f"Beyond {MOST_PAIRS:,} pairs of local parameters and atoms confidences are left out, and matches far from "
            "their atom are listed instead of doubtful ones: fusion.confidence() takes its time."
        )
        return None
    try:
        return fusion.confidence(name, None if draws else "conditional")
    except InputError as error:
        notes.append(f"Confidences are left out: {error}")
        return None


def list_doubtful(fusion: Fusion, name: str, stated: Confidence | None, distance: Array) -> list[Content]:
    """The least certain matches, with the most probable other atom (None: a new one); else the farthest ones."""
    matching = fusion.matchings[name]
    labels, offsets = matching.stacked_labels, matching.offsets
    sure = None if stated is None else np.concatenate(stated)
    worst = _worst(matching, sure, distance)
    held_by = group_of_values(offsets)[worst].tolist()
    found: list[Content] = [
        {
            "site": fusion.sites[j],
            "row": i - int(offsets[j]),
            "atom": int(labels[i]),
            "distance": rounded(distance[i], 3),
            "confidence": None if sure is None else exact(sure[i]),
            "other": None,
            "other_probability": None,
        }
        for i, j in zip(worst.tolist(), held_by, strict=True)
    ]
    if stated is not None and found:
        tables = _drawn_tables(fusion, name, worst) if stated.how == "drawn" else _tables(fusion, name, worst, held_by)
        _name_rivals(matching, found, tables)
    return found


def _worst(matching: Matching, sure: Array | None, distance: Array) -> Index:
    """Which matches are listed, worst first."""
    labels = matching.stacked_labels
    counted = labels < matching.K
    if sure is None:
        candidates, score = np.flatnonzero(counted & (matching.counts[labels] > 1)), -distance
    else:
        candidates, score = np.flatnonzero(counted & (sure < SURE)), sure
    return candidates[np.argsort(score[candidates], kind="stable")[:NAMED]]


def _drawn_tables(fusion: Fusion, name: str, rows: Index) -> Array:
    """Probabilities (n, K + 1) of every atom for these values, from draws."""
    return shares_at(fusion.drawn(name), fusion.matchings[name].stacked_labels, rows)


def _tables(fusion: Fusion, name: str, rows: Index, held_by: list[int]) -> Array:
    """The same, conditional on all else; an atom that nobody else holds is a new one there, and is put back."""
    matching, board = fusion.matchings[name], fusion.board(name)
    by_site = {j: conditional(board, j) for j in dict.fromkeys(held_by)}
    tables = np.stack([by_site[j][i - matching.offsets[j]] for i, j in zip(rows.tolist(), held_by, strict=True)])
    alone = np.flatnonzero(matching.counts[matching.stacked_labels[rows]] == 1)
    tables[alone, matching.stacked_labels[rows[alone]]] = tables[alone, -1]
    tables[alone, -1] = 0.0
    return tables


def _name_rivals(matching: Matching, found: list[Content], tables: Array) -> None:
    """Write the most probable other atom into each doubt."""
    for doubt, rival in zip(found, tables, strict=True):
        rival[doubt["atom"]] = -1.0
        best = int(rival.argmax())
        doubt["other"] = best if best < len(matching.counts) else None
        doubt["other_probability"] = exact(rival[best])


def list_aside(fusion: Fusion, name: str, matching: Matching) -> Content:
    """What is not counted, and why."""
    single = pieces(fusion, name)
    outliers = 0 if matching.kept is None else int((~matching.kept).sum())
    aside = set_aside(fusion, name) if len(matching.set_aside) <= NOTED else []
    gross = set() if matching.kept is None else set(np.flatnonzero(~matching.kept).tolist())
    return {
        "set_aside": [
            {
                "site": one.site,
                "row": one.row,
                "atom": int(matching.stacked_labels[row]),
                "why": "was not fitted" if row in gross else one.why,
                "probability": None if row in gross else exact(one.probability),
                "nearest": one.nearest,
            }
            for row, one in zip(matching.set_aside.tolist(), aside, strict=False)
        ],
        "set_aside_number": {
            "outliers": outliers,
            "artefacts": int(np.isin(matching.stacked_labels, [a.atom for a in matching.artefacts]).sum()),
            "all": len(matching.set_aside),
        },
        "reasons": list(matching.reasons[:NOTED]),
        "pieces": [one.sentence for one in single[:NOTED]],
        "pieces_number": len(single),
        "junk_probability": exact(matching.junk_probability),
    }
