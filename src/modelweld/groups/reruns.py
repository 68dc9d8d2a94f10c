"""One answer of many runs of one model on the same rows, and how often each group is found again.

Runs of the same rows are no sites: their errors are the same, so that their agreement says nothing of how well a value
is known, and that they resemble each other is no warning. What they say is how often a group is found: a frequency.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from modelweld.core.values import Array, Index, Key
from modelweld.errors import InputError
from modelweld.families import Directions, Family
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.feature_names import change_axes
from modelweld.inputs.local_model import LocalModel, derive
from modelweld.inputs.plain_tables import is_plain
from modelweld.kinds import kind_of
from modelweld.libraries import adapters, write
from modelweld.libraries.centre_models import number_labels, summarise_groups
from modelweld.libraries.known_classes import like_most
from modelweld.libraries.reading import read

DIMENSIONS = 128
"""Of the random projection by which groups are compared as sets of rows: cosines are right up to about .09."""


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """What many runs agree on; ``print`` it.

    Attributes
    ----------
    frequency : array (K,)
        How probably a fresh run finds each group, the most frequent first.
    found : int array (K,)
        In how many runs it was found.
    runs : int
        How many there were.
    labels : int array (n,) or None
        The group of each row, by the vote of all runs; -1: no run has placed it. None where runs have no labels.
    votes : array (n,) or None
        Share of the runs that placed the row there.
    fusion : Fusion
        The matching of all runs, whose sites are the runs.
    atoms : int array (K,)
        What the groups are called there.

    Examples
    --------
    >>> import modelweld
    >>> modelweld.consensus([[0, 0, 0, 1, 1, 1], ["b", "b", "b", "a", "a", "a"], [0, 0, 0, 1, 1, -1]])
    <Consensus of 3 runs: 2 groups>
      group 0: in 3 of 3 runs, a fresh run finds it with probability 0.80
      group 1: in 2 of 3 runs, a fresh run finds it with probability 0.60
    """

    frequency: Array
    found: Index
    runs: int
    labels: Index | None
    votes: Array | None
    fusion: Fusion
    atoms: Index
    _parameters: LocalModel | None

    def __repr__(self) -> str:
        rows = [
            f"  group {k}: in {found} of {self.runs} runs, a fresh run finds it with probability {probability:.2f}"
            for k, (found, probability) in enumerate(zip(self.found, self.frequency, strict=True))
        ]
        return "\n".join([f"<Consensus of {self.runs} runs: {len(self.found)} groups>", *rows])

    def model(self, like: Any = None) -> Any:
        """One fitted model with these groups: of the runs' own class where that can be, or of the class `like`."""
        if self._parameters is None:
            raise InputError("labels do not say where groups lie: give the rows, modelweld.consensus(runs, X).")
        return write(self._parameters, like)

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page of the fusion of all runs, groups that few of them have included."""
        return self.fusion.report(path, f"Consensus of {self.runs} runs", force=force, draws=False)


def consensus(runs: Sequence[Any], X: Any = None, *, seed: int = 0) -> Consensus:
    """One answer of many runs of one model, or of many clusterings, of the same rows.

    Groups of different runs are matched, in any number: a run may split a group, or join two. Where runs label the
    rows, every row then goes where most runs place it, and groups that win no row are gone. Topics and components are
    kept where a fresh run would more probably find them than not.

    Parameters
    ----------
    runs : sequence of fitted models, or of label vectors (n,)
        Each fitted to the same rows, with other seeds, starts, numbers of clusters or settings. Negative labels are
        noise.
    X : array or table (n, D), optional
        The rows: clusters are then compared by their means and spreads, else by the rows that they have in common.
    seed : int
        As in `fuse`.

    Notes
    -----
    Probabilities are those of a fresh run of the same kind on the same rows: of stability, not of truth. A group that
    every run finds may still be an artefact of all of them. Where the number of clusters is known and all runs have it,
    the run of least inertia is as good.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> from sklearn.cluster import KMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (50, 2)) for m in (0, 8, 16)])
    >>> runs = [KMeans(k, n_init=1, random_state=k).fit(X) for k in (2, 3, 3, 3, 4, 5)]
    >>> found = modelweld.consensus(runs, X)
    >>> len(found.frequency), np.bincount(found.labels).tolist()
    (3, [50, 50, 50])
    """
    runs = list(runs)
    if len(runs) < 2:
        raise InputError(f"a consensus is of two runs or more; found {len(runs)}.")
    given = [_labels_of(run, X) for run in runs]
    labels = [own for own in given if own is not None]
    if len(labels) < len(runs):
        models = [read(run) for run in runs]
        return _keep_frequent(fuse(models, _families(models), screens=[], site_effects=False, seed=seed))
    lengths = sorted({len(own) for own in labels} | ({np.shape(X)[0]} if X is not None else set()))
    if len(lengths) > 1:
        raise InputError(f"all runs label the same rows; found {lengths[0]} and {lengths[-1]} of them.")
    sites = _sets_of_rows(labels) if X is None else [_summarise(X, own, r) for r, own in enumerate(labels)]
    fusion = fuse(sites, screens=[], site_effects=False, seed=seed)
    cls = Counter(map(type, runs)).most_common(1)[0][0]
    like = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
    like = like if any(adapter.name == like for adapter in adapters()) else ""
    return _vote(fusion, [number_labels(own)[1] for own in labels], X, like)


def _summarise(X: Any, labels: Any, run: int) -> LocalModel:
    try:
        return summarise_groups(X, labels)
    except InputError as wrong:
        raise InputError(f"run {run}: {wrong}") from None


def _labels_of(run: Any, X: Any) -> Any:
    """The label of each row, of a run that gives labels; None if it does not."""
    if is_plain(run):
        return run
    if hasattr(run, "labels_"):
        return run.labels_
    return run.predict(X) if X is not None and hasattr(run, "predict") else None


def _sets_of_rows(labels: Sequence[Any]) -> list[Array]:
    """Groups as directions: of the sum of random vectors of their rows, alike as far as they have rows in common."""
    numbered = [number_labels(own) for own in labels]
    rows = np.random.default_rng(0).standard_normal((len(numbered[0][1]), DIMENSIONS))
    found = []
    for names, index in numbered:
        sums = np.zeros((len(names), DIMENSIONS))
        np.add.at(sums, index[index >= 0], rows[index >= 0])
        found.append(sums / np.linalg.norm(sums, axis=1, keepdims=True))
    return found


def _families(sites: Sequence[LocalModel]) -> Mapping[Key, Family] | None:
    """Families of the kind, whose directions vary from run to run by half the way to the next of their own run.

    Runs that end in the same optimum repeat it to the last digits: what is learned from them is that there is no noise.
    """
    found = kind_of(sites).families(sites)
    for name, family in (found or {}).items():
        if isinstance(name, str) and isinstance(family, Directions):
            near = np.concatenate([_nearest(np.asarray(site.arrays[name]), family.axial) for site in sites])
            D, apart = np.shape(sites[0].arrays[name])[1], max(1 - float(np.median(near)), np.finfo(np.float32).eps)
            noise = Directions(concentration=2 * (D - 1) / apart, own=False, axial=family.axial, learning="nothing")
            found = {**(found or {}), name: noise}
    return found


def _nearest(directions: Array, axial: bool) -> Array:
    """Cosine of each direction with the nearest of the others."""
    cosines = directions @ directions.T
    cosines = np.abs(cosines) if axial else cosines
    np.fill_diagonal(cosines, -1.0)
    return np.asarray(cosines.max(axis=1))


def _frequencies(fusion: Fusion) -> Array:
    """How probably a fresh run holds each atom: by the learned prior of how often atoms are shared."""
    prior = fusion.matching.prior
    assert prior is not None
    odds = prior.increments(len(fusion.labels) + 1)[fusion.counts]
    return np.asarray(1 / (1 + np.exp(-odds)))


def _vote(fusion: Fusion, labels: Sequence[Index], X: Any, like: str) -> Consensus:
    """Every row where most runs place it; groups are those that win rows."""
    votes = np.zeros((len(labels[0]), len(fusion.counts)))
    for own, atoms in zip(labels, fusion.labels, strict=True):
        placed = np.flatnonzero(own >= 0)
        votes[placed, np.asarray(atoms)[own[placed]]] += 1
    there = votes.any(axis=1)
    sizes = np.bincount(votes.argmax(axis=1)[there], minlength=len(fusion.counts))
    atoms = _order(fusion, sizes)
    place = np.zeros(len(sizes), dtype=np.intp)
    place[atoms] = np.arange(len(atoms))
    won = np.where(there, place[votes.argmax(axis=1)], -1)
    groups = None
    if X is not None and len(atoms) > 1:
        groups = summarise_groups(X, won).with_(facts={"class": like} if like else {})
    frequency, share = _frequencies(fusion)[atoms], votes.max(axis=1) / len(labels)
    return Consensus(frequency, fusion.counts[atoms], len(labels), won, share, fusion, atoms, groups)


def _keep_frequent(fusion: Fusion) -> Consensus:
    """Groups that a fresh run would more probably find than not."""
    frequency = _frequencies(fusion)
    atoms = _order(fusion, frequency >= 0.5)
    fused, set_name = fusion.parameters(), next(iter(fusion.matchings))
    members = change_axes(fused, set_name, lambda x, axis: np.take(x, atoms, axis=axis))
    kept = derive(fused, **members, facts={**fused.facts, "class": like_most(fusion._fit.models)})
    return Consensus(frequency[atoms], fusion.counts[atoms], len(fusion.labels), None, None, fusion, atoms, kept)


def _order(fusion: Fusion, sizes: Any) -> Index:
    """Atoms whose `sizes` are not zero: those of most runs first, and the largest among these."""
    kept = np.flatnonzero(sizes)
    return kept[np.lexsort((-np.asarray(sizes)[kept].astype(float), -fusion.counts[kept]))]
