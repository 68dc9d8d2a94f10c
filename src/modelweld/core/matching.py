"""Which local parameters of a set belong to the same atom: what a finished run leaves, and how atoms are numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import AnyBoard, Run
from modelweld.core.family import Family
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index, Key, group_of_values

if TYPE_CHECKING:
    from modelweld.fit.effects.corrections import SiteEffects


@dataclass(frozen=True, eq=False, repr=False)
class Matching:
    """Which members of one set are copies of the same atom.

    Atoms are numbered by decreasing count, those that are excluded after the K others.

    Attributes
    ----------
    stacked_labels : int array (N,)
        Atom of each local parameter, sites one after the other.
    offsets : int array (J + 1,)
        Where the sites begin.
    counts : int array (K,)
        Number of sites that hold each atom.
    families : dict of str, or tuple of str, to Family
        Each array's family, or that of several arrays together, with learned hyperparameters.
    values : dict of str, or tuple of str, to array (K, D)
        Global values, one row per atom, flattened, several arrays side by side: ``fusion.parameters`` has the shapes.
    objective : float
        Log probability of the matching plus log evidence.
    history : tuple of float
        The objective after every sweep and every update of hyperparameters, and after matches were taken back.
    changes : tuple of int
        How many groups changed in each sweep.
    converged : bool
        Whether the last sweep changed nothing.
    prior : Prior or None
        The prior of the matching (None for baselines that have none).
    engine : str
        What did the sweeps: "numpy", "sparse", "compiled", or the name of a baseline.
    delta : float
        Learned share of fragments beyond the first; zero where every site holds an atom once.
    kept : bool array (N,) or None
        Which local parameters were fitted, or are labelled like one that was; the others are gross outliers, of sites
        that are excluded, or say nothing. None if nothing was excluded and outliers were not looked for.
    reasons : tuple of str
        Why the others were not, and why matches were taken back, in plain words.
    screened : bool
        Whether gross outliers were looked for.
    duplicates : dict of int to int, or None
        Sites that repeat another, and that other: they are labelled like it and not fitted. None if not looked for.
    effects : SiteEffects or None
        What sites differed by, and was corrected before the fit; None: nothing.
    common_splits : int
        How often two atoms were joined because sites split one alike.

    Examples
    --------
    >>> import modelweld
    >>> matching = modelweld.fuse([[[0.0], [5.0]], [[5.1]], [[0.1], [4.9]]]).matching
    >>> matching.stacked_labels.tolist(), matching.counts.tolist(), matching.converged
    ([1, 0, 0, 1, 0], [3, 2], True)
    """

    stacked_labels: Index
    offsets: Index
    counts: Index
    families: Mapping[Key, Family]
    values: Mapping[Key, Array]
    prior: Prior | None
    objective: float
    history: tuple[float, ...]
    changes: tuple[int, ...]
    converged: bool
    engine: str
    delta: float = 0.0
    kept: NDArray[np.bool_] | None = None
    reasons: tuple[str, ...] = ()
    screened: bool = False
    duplicates: Mapping[int, int] | None = None
    effects: SiteEffects | None = None
    common_splits: int = 0

    def __repr__(self) -> str:
        aside = f", {len(self.excluded)} excluded" if len(self.excluded) else ""
        J, N = len(self.offsets) - 1, len(self.stacked_labels)
        found = f"{self.K} atoms ({self.shared} shared) from {N} values of {J} sites{aside}"
        return f"<Matching: {found}, objective {self.objective:.1f}>"

    def say(self, *findings: str) -> Matching:
        """The matching with further sentences for users."""
        return replace(self, reasons=(*self.reasons, *findings)) if findings else self

    @property
    def splits(self) -> Fragments | None:
        """How probable fragments were taken to be; None where every site holds an atom once."""
        return Fragments(self.delta) if self.delta > 0 else None

    @property
    def atoms_fitted(self) -> int:
        """Number of atoms that hold a value that was not excluded before the fit: they come first."""
        return len(self.counts) if self.kept is None else int(self.stacked_labels[self.kept].max(initial=-1)) + 1

    @cached_property
    def fitted_counts(self) -> Index:
        """Number of sites that were fitted and hold each atom: `counts` without duplicates."""
        if not self.duplicates:
            return self.counts
        site = group_of_values(self.offsets)
        held = np.unique(np.stack([self.stacked_labels, site])[:, ~np.isin(site, list(self.duplicates))], axis=1)[0]
        return np.bincount(held, minlength=len(self.counts))

    @property
    def K(self) -> int:
        """Number of groups that any site has: all atoms but those that are excluded."""
        return self.atoms_fitted

    @property
    def shared(self) -> int:
        """How many of them several sites have; sites that repeat another do not count."""
        return int((self.fitted_counts[: self.K] > 1).sum())

    @cached_property
    def excluded(self) -> Index:
        """Rows whose atom is excluded: a gross outlier, or of an excluded site.

        It stays among `values` and `counts`, after the K others.
        """
        return np.flatnonzero(self.stacked_labels >= self.K)

    @property
    def sweeps(self) -> int:
        """Number of sweeps, the idle last one included."""
        return len(self.changes)

    @cached_property
    def labels(self) -> list[Index]:
        """Atom of each local parameter, one array per site."""
        bounds = self.offsets.tolist()
        return [self.stacked_labels[a:b] for a, b in pairwise(bounds)]

    @cached_property
    def presence(self) -> NDArray[np.bool_]:
        """Which sites hold which atoms: (J, K)."""
        held = np.zeros((len(self.offsets) - 1, len(self.counts)), dtype=bool)
        held[np.repeat(np.arange(len(held)), np.diff(self.offsets)), self.stacked_labels] = True
        return held


def make_matching(board: AnyBoard, progress: Run, names: Sequence[Key], order: Index, offsets: Index) -> Matching:
    """The board's matching; value i of the board is value ``order[i]`` as it was given."""
    values = board.estimates()
    number = by_count(board.counts, values[0])
    rank = ranks(number)
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = rank[board.labels]
    return Matching(
        stacked_labels=labels,
        offsets=offsets,
        counts=board.counts[number],
        families=dict(zip(names, board.families, strict=True)),
        values={name: v[number] for name, v in zip(names, values, strict=True)},
        prior=board.prior,
        objective=float(progress.history[-1]),
        history=tuple(map(float, progress.history)),
        changes=tuple(progress.changes),
        converged=progress.converged,
        engine=board.engine,
        delta=board.delta,
    )


def ranks(number: Index) -> Index:
    """Where each atom stands in an order of all of them."""
    rank = np.empty(len(number), dtype=np.int64)
    rank[number] = np.arange(len(number))
    return rank


def by_count(counts: Index, values: Array) -> Index:
    """Atoms by decreasing count, then by content, so that their numbers do not depend on the order of arrival."""
    order = np.lexsort((values[:, 0], -counts))
    tied = (np.diff(counts[order]) == 0) & (np.diff(values[order, 0]) == 0)
    return np.lexsort((*values.T[::-1], -counts)) if tied.any() else order
