"""A Fusion as plain numbers and words, ready for JSON: all that the page shows, and nothing that is not in here."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import modelweld
from modelweld.diagnostics.notes import pieces, set_aside
from modelweld.errors import InputError
from modelweld.families import Gaussian
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import arrays_of, group_of_rows
from modelweld.matching.result import Matching
from modelweld.posterior.conditional import conditional
from modelweld.priors.beta_bernoulli import BetaBernoulli
from modelweld.priors.spectrum import Spectrum
from modelweld.report.coordinates import Values, deviations, likeness, plane, values_of
from modelweld.report.pictures import picture
from modelweld.report.top_words import words_of

FORMAT = 1
"""Version of the layout of these numbers."""

DIGITS = 6
"""Significant digits of values: more than a table or a picture can show. Sums, probabilities and scores are exact."""

MOST_PAIRS = 500_000
"""Local parameters x atoms up to which confidences are computed: about five seconds at ten microseconds each."""

MOST_DIAGNOSED = 200_000
"""Local parameters up to which sites are diagnosed: about five seconds at twenty microseconds each, twice."""

MOST_ROWS, MOST_SITES = 100_000, 5_000
"""Local parameters and sites that are listed one by one (a megabyte and a half); beyond, sites are picked evenly."""

MOST_COLUMNS, MOST_VALUES = 40, 60_000
"""Columns that are listed, those in which atoms differ most; fewer if atoms have more values (half a megabyte,
and as much again for deviations); members' values are listed if they are not more."""

MOST_DOUBTFUL, SURE = 50, 0.95
"""Doubtful matches that are listed, and the confidence from which a match is not doubtful."""

MOST_NOTES = 500
"""Parameters set aside, or in pieces, that are listed one by one."""


def numbers_of(fusion: Fusion) -> dict[str, Any]:
    """All that a report shows, as dicts, lists, numbers and words.

    Parameters
    ----------
    fusion : Fusion
        Any fusion, also a baseline's, which has no scores.

    Returns
    -------
    dict
        Ready for ``json.dumps``. Values that do not exist are None. What was left out because of size is in ``notes``.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> found = numbers_of(fusion)
    >>> found["sets"][0]["K"], found["sets"][0]["labels"]
    (3, [0, 1, 1, 0, 2])
    """
    if not fusion.matchings:
        raise InputError(
            "nothing was matched in this fusion (classes are aligned by name), so there is nothing to report: "
            "fusion.fused() and fusion.model() are what there is."
        )
    notes: list[str] = []
    sizes = sum(np.diff(m.offsets) for m in fusion.matchings.values())
    shown = _shown(np.asarray(sizes), notes)
    verdict = _verdict(fusion, shown, int(np.sum(sizes)), notes)
    return {
        "format": FORMAT,
        "versions": {
            "modelweld": modelweld.__version__,
            "numpy": np.__version__,
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
        "kind": fusion.models[0].kind,
        "J": len(fusion.sites),
        "sites": [fusion.sites[j] for j in shown],
        "converged": fusion.converged,
        "objective": exact(fusion.objective),
        "settings": fusion.settings,
        "verdict": verdict,
        "picture": picture(fusion, notes),
        "sets": [_set(fusion, name, shown, notes) for name in fusion.matchings],
        "notes": list(dict.fromkeys(notes)),
    }


def _shown(sizes: NDArray[np.int64], notes: list[str]) -> NDArray[np.int64]:
    """Which sites are listed: all, or as many as there is room for, evenly spaced."""
    J, N = len(sizes), int(sizes.sum())
    most = min(J, MOST_SITES, max(1, int(J * MOST_ROWS / max(N, 1))))
    if most < J:
        notes.append(f"{most:,} of the {J:,} sites are listed and drawn, evenly picked; totals are of all.")
    return np.unique(np.linspace(0, J - 1, most).round().astype(np.int64))


def _verdict(fusion: Fusion, shown: NDArray[np.int64], N: int, notes: list[str]) -> dict[str, Any] | None:
    if N > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters the gain of fusing is left out: worth_merging().")
        return None
    try:
        found = fusion.worth_merging()
    except InputError as error:
        notes.append(f"The gain of fusing is left out: {error}")
        return None
    return {
        "gain": exact(found.gain),
        "sentence": found.sentence,
        "sites": [{"gain": exact(found.sites[j].gain), "shared": found.sites[j].shared} for j in shown],
    }


def _set(fusion: Fusion, name: str, shown: NDArray[np.int64], notes: list[str]) -> dict[str, Any]:
    """One set: its matching, values, members, order, map, hyperparameters, diagnostics."""
    matching = fusion.matchings[name]
    labels, counts, K = matching.stacked_labels, matching.counts, matching.K
    values = values_of(fusion, name)
    distance, spread = deviations(values, labels, counts)
    local, atoms, explained = plane(values, labels, K)
    sure = _confidence(fusion, name, notes)
    rows = np.flatnonzero(np.isin(group_of_rows(matching.offsets), shown))
    site_order, atom_order = likeness(matching.presence[shown], K)
    listed = _columns(values)
    members = None
    if len(rows) * len(listed) <= MOST_VALUES:
        members = short(np.where(values.seen, values.local, np.nan)[np.ix_(rows, listed)])
    else:
        notes.append(f"Beyond {MOST_VALUES:,} numbers the members' own values are left out; atoms have theirs.")
    if len(listed) < len(values.columns):
        notes.append(f"Of {len(values.columns):,} columns those {len(listed)} are listed in which atoms differ most.")
    return {
        "name": name,
        "K": K,
        "N": len(labels),
        "shared": int((counts[:K] > 1).sum()),
        "sizes": np.diff(matching.offsets)[shown].tolist(),
        "labels": labels[rows].tolist(),
        "counts": counts.tolist(),
        "columns": [values.columns[d] for d in listed],
        "dimensions": len(values.columns),
        "atoms": short(values.atoms[:, listed]),
        "spread": short(spread[:, listed]),
        "members": members,
        "distance": short(distance[rows], 3),
        "confidence": None if sure is None else short(sure[rows], 4),
        "doubtful_number": None if sure is None else int((sure[labels < K] < SURE).sum()),
        "doubtful": _doubtful(fusion, name, sure, distance),
        "order": {"sites": site_order.tolist(), "atoms": atom_order.tolist()},
        "map": {"explained": short(explained, 3), "members": short(local[rows], 4), "atoms": short(atoms, 4)},
        "roots": values.shares,
        **_aside(fusion, name, matching),
        "diagnostics": _diagnostics(fusion, name, shown, notes),
        "fit": _fit(matching),
        "words": words_of(fusion, name),
    }


def _columns(values: Values) -> NDArray[np.int64]:
    most = min(MOST_COLUMNS, max(1, MOST_VALUES // len(values.atoms)))
    if len(values.columns) <= most:
        return np.arange(len(values.columns))
    return np.sort(np.argsort(-values.atoms.std(axis=0), kind="stable")[:most])


def _confidence(fusion: Fusion, name: str, notes: list[str]) -> Array | None:
    matching = fusion.matchings[name]
    if len(matching.stacked_labels) * len(matching.counts) > MOST_PAIRS:
        notes.append(
            f"Beyond {MOST_PAIRS:,} pairs of local parameters and atoms confidences are left out, and matches far from "
            "their atom are listed instead of doubtful ones: fusion.confidence() takes its time."
        )
        return None
    try:
        return np.concatenate(fusion.confidence(name))
    except InputError as error:
        notes.append(f"Confidences are left out: {error}")
        return None


def _doubtful(fusion: Fusion, name: str, sure: Array | None, distance: Array) -> list[dict[str, Any]]:
    """The least certain matches, with the most probable other atom (None: a new one); else the farthest ones."""
    matching = fusion.matchings[name]
    labels, offsets, K = matching.stacked_labels, matching.offsets, matching.K
    group = group_of_rows(offsets)
    counted = (labels < K) & (matching.counts[labels] > 1 if sure is None else True)
    score = -distance if sure is None else sure
    candidates = np.flatnonzero(counted & (True if sure is None else sure < SURE))
    worst = candidates[np.argsort(score[candidates], kind="stable")[:MOST_DOUBTFUL]]
    found: list[dict[str, Any]] = []
    board = None if sure is None else fusion.board(name)
    tables: dict[int, Array] = {}
    for row in worst.tolist():
        j = int(group[row])
        match = {
            "site": fusion.sites[j],
            "row": row - int(offsets[j]),
            "atom": int(labels[row]),
            "distance": short(distance[row], 3),
            "confidence": None,
            "other": None,
            "other_probability": None,
        }
        if board is not None and sure is not None:
            if j not in tables:
                tables[j] = conditional(board, j)
            rival = tables[j][row - int(offsets[j])].copy()
            alone = matching.counts[labels[row]] == 1
            rival[-1 if alone else labels[row]] = -1.0
            best = int(rival.argmax())
            match["confidence"] = exact(sure[row])
            match["other"] = best if best < len(matching.counts) else None
            match["other_probability"] = exact(rival[best])
        found.append(match)
    return found


def _aside(fusion: Fusion, name: str, matching: Matching) -> dict[str, Any]:
    """What is not counted, and why."""
    single = pieces(fusion, name)
    outliers = 0 if matching.kept is None else int((~matching.kept).sum())
    aside = set_aside(fusion, name) if len(matching.set_aside) <= MOST_NOTES else []
    gross = set() if matching.kept is None else set(np.flatnonzero(~matching.kept).tolist())
    return {
        "set_aside": [
            {
                "site": one.site,
                "row": one.row,
                "atom": int(matching.stacked_labels[row]),
                "why": "was an outlier and not fitted" if row in gross else one.why,
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
        "reasons": list(matching.reasons[:MOST_NOTES]),
        "pieces": [one.sentence for one in single[:MOST_NOTES]],
        "pieces_number": len(single),
        "junk_probability": exact(matching.junk_probability),
    }


def _diagnostics(fusion: Fusion, name: str, shown: NDArray[np.int64], notes: list[str]) -> list[dict[str, Any]] | None:
    if len(fusion.matchings[name].stacked_labels) > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters sites are not diagnosed: fusion.diagnose().")
        return None
    try:
        found = fusion.diagnose(name)
    except InputError as error:
        notes.append(f"Sites are not diagnosed: {error}")
        return None
    return [
        {
            "unshared": d.unshared,
            "score": exact(d.score),
            "surprise": exact(d.surprise),
            "shift": exact(_largest(d.shift)),
            "influence": exact(d.influence),
            "warning": d.warning,
        }
        for d in (found[j] for j in shown)
    ]


def _largest(shift: Array) -> float:
    """The largest shift of any column, with its sign; NaN if none is known."""
    return float(shift[np.nanargmax(np.abs(shift))]) if np.isfinite(shift).any() else np.nan


def _fit(matching: Matching) -> dict[str, Any]:
    """How the run went and what it learned, with the paper's symbols."""
    learned: list[dict[str, Any]] = []
    for key, family in matching.families.items():
        of = ", ".join(arrays_of(key)) if len(matching.families) > 1 or not isinstance(key, str) else ""
        for name, value in family.learned().items():
            if value is None:
                continue
            x = np.asarray(value, dtype=np.float64)
            symbol, meaning = "", f"{name} ({type(family).__name__})"
            if isinstance(family, Gaussian) and name in PAPER:
                symbol, meaning, root = PAPER[name]
                x = np.sqrt(x) if root else x
            learned.append({"symbol": symbol, "name": meaning, "of": of, "value": _listed(x)})
    for symbol, meaning, value in _of_prior(matching):
        learned.append({"symbol": symbol, "name": meaning, "of": "", "value": exact(value)})
    if matching.delta > 0:
        meaning = "share of pieces beyond a site's first of an atom"
        learned.append({"symbol": "δ", "name": meaning, "of": "", "value": exact(matching.delta)})
    return {
        "families": [
            {"arrays": list(arrays_of(key)), "family": type(family).__name__, "shape": getattr(family, "shape", None)}
            for key, family in matching.families.items()
        ],
        "prior": None if matching.prior is None else type(matching.prior).__name__,
        "engine": matching.engine,
        "sweeps": matching.sweeps,
        "changes": list(matching.changes),
        "converged": matching.converged,
        "objective": exact(matching.objective),
        "history": [exact(x) for x in matching.history],
        "learned": learned,
    }


PAPER = {
    "noise": ("σ", "deviation of a site's value from its atom", True),
    "spread": ("σ₀", "deviation of atoms from their mean", True),
    "mean": ("μ₀", "mean of atoms", False),
    "trust": ("", "factor on the sites' stated variances", False),
}
"""Hyperparameters of a Gaussian: the paper's symbol, in words, and whether it is the root of ours (a variance)."""


def _of_prior(matching: Matching) -> list[tuple[str, str, float]]:
    prior = matching.prior
    if isinstance(prior, BetaBernoulli):
        return [
            ("γ₀", "atoms a site is expected to hold", prior.gamma0),
            ("α", "concentration: large if sites share little", prior.alpha),
        ]
    if isinstance(prior, Spectrum):
        from scipy.special import betaln

        # sum over m of m / J C(J, m) exp R(m) = c B(a + 1, b), which is the paper's c / b = gamma0 where a is 0
        mass = np.exp(np.log(prior.c) + betaln(prior.a + 1, prior.b))
        return [
            ("γ₀", "atoms a site is expected to hold", float(mass)),
            ("α", "concentration (b of the spectrum of supports)", prior.b),
            ("a", "first shape of the spectrum of supports; 0 in the paper", prior.a),
            ("", "values per site that belong to no atom, expected", prior.junk),
        ]
    return []


def _listed(x: Array) -> Any:
    """One number if all are equal, else a list (cut, if long, to what a table can hold)."""
    flat = x.ravel()
    if flat.size and (flat == flat[0]).all():
        return exact(flat[0])
    return short(flat[:MOST_COLUMNS] if x.ndim < 2 else x.diagonal()[:MOST_COLUMNS])


def exact(x: Any) -> float | None:
    """A float, or None where there is none."""
    return float(x) if np.isfinite(x) else None


def short(x: Any, digits: int = DIGITS) -> Any:
    """Nested lists of numbers of so many significant digits; None where there is none.

    Examples
    --------
    >>> short([[1 / 3, float("nan")]])
    [[0.333333, None]]
    """
    if isinstance(x, (list, np.ndarray)):
        return [short(entry, digits) for entry in (x.tolist() if isinstance(x, np.ndarray) else x)]
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None
