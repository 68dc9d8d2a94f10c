"""What draws of matchings say: how many atoms, which values belong together, and whether the chains can be trusted.

Have the chains mixed, and what are their draws worth? Split R-hat and bulk effective sample size.

Gelman et al., *Bayesian Data Analysis* (2013), 11.4-11.5; Vehtari, Gelman, Simpson, Carpenter, Bürkner,
*Rank-normalization, folding, and localization*, Bayesian Analysis 2021.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, group_of_values
from modelweld.errors import InputError, ModelweldWarning
from modelweld.fit.search.moves import LARGEST_TABLE
from modelweld.inputs.notebook import html_table
from modelweld.progress import track

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


MOVES = ("split", "merge", "value")
"""What acceptance is counted of."""

SPLIT, MERGE, VALUE = range(len(MOVES))


def number_of_atoms(matching: Matching, labels: Index) -> tuple[int, int]:
    """How many atoms a draw (N,) has by the rules of `Matching.K`, without outliers, and how many are shared."""
    group, J = group_of_values(matching.offsets), len(matching.offsets)
    fitted = ~np.isin(group, list(matching.duplicates or ()))
    fitted &= True if matching.kept is None else matching.kept
    sites = np.unique(np.unique(labels[fitted] * J + group[fitted]) // J, return_counts=True)[1]
    return len(sites), int((sites > 1).sum())


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of matchings, and of hyperparameters where these were drawn too.

    Attributes
    ----------
    labels : int array (chains, draws, N)
        A name for the atom of each local parameter, sites one after the other; names mean nothing across draws.
    K : int array (chains, draws)
        Number of groups that any site has: comparable with ``fusion.K``.
    shared : int array (chains, draws), or None
        How many of them several sites have: comparable with ``fusion.shared``.
    objective : array (chains, draws)
        Log probability of the matching plus log evidence.
    acceptance : dict of str to float
        Share of proposed splits and merges that were accepted, and share of values that the groups' moves moved.
    hyperparameters : dict of str to array (chains, draws, ...), or None
        Draws of what was drawn with the matching: "noise", "spread", "mean", ...; None where it was fixed.
    fusion : Fusion or None
        Whose matchings these are.
    fitted : tuple of int, or None
        K and number of shared groups that the fit has, which intervals include.

    Examples
    --------
    >>> labels = np.array([[[0, 0, 1], [0, 0, 0], [0, 0, 1], [0, 0, 1]]])        # one chain, four draws, three values
    >>> posterior = Posterior(labels, K=np.array([[2, 1, 2, 2]]), objective=np.zeros((1, 4)))
    >>> posterior.K_probabilities
    {1: 0.25, 2: 0.75}
    >>> posterior.K_interval()
    (1, 2)
    >>> posterior.together([(0, 1), (0, 2)])
    array([1.  , 0.25])
    """

    labels: Index
    K: Index
    objective: Array
    acceptance: Mapping[str, float] = field(default_factory=dict)
    hyperparameters: Mapping[str, Array] | None = None
    fusion: Fusion | None = None
    shared: Index | None = None
    fitted: tuple[int, int] | None = None

    @property
    def K_probabilities(self) -> dict[int, float]:
        """Posterior probability of each number of atoms."""
        values, counts = np.unique(self.K, return_counts=True)
        return dict(zip(values.tolist(), (counts / self.K.size).tolist(), strict=True))

    def K_interval(self, level: float = 0.9) -> tuple[int, int]:
        """The interval that holds the number of atoms with at least this probability, and the number that is shown.

        As much is left out on either side.
        """
        return _interval(self.K, level, self.fitted and self.fitted[0])

    def shared_interval(self, level: float = 0.9) -> tuple[int, int]:
        """The same of the number of atoms that several sites have."""
        if self.shared is None:
            raise InputError("shared groups are counted in what fusion.posterior.sample() or draws() returns.")
        return _interval(self.shared, level, self.fitted and self.fitted[1])

    def as_given(self, order: Index, matching: Matching, fusion: Fusion | None = None) -> Posterior:
        """Draws whose value i is value ``order[i]`` as it was given, with K counted as the fusion's is."""
        labels = np.empty_like(self.labels)
        labels[..., order] = self.labels
        numbers = np.array([[number_of_atoms(matching, draw) for draw in chain] for chain in labels])
        fitted = matching.K, matching.shared
        return replace(self, labels=labels, K=numbers[..., 0], shared=numbers[..., 1], fusion=fusion, fitted=fitted)

    @cached_property
    def co_assignment(self) -> Array:
        """Probability (N, N) that two local parameters belong to one atom, sites one after the other."""
        draws = self.labels.reshape(-1, self.labels.shape[-1])
        N = draws.shape[1]
        if N * N > LARGEST_TABLE:
            raise InputError(
                f"a table of co-assignments has at most {LARGEST_TABLE:,} entries; there are {N} values. Ask "
                "together(pairs) for those that matter."
            )
        return sum((labels[:, None] == labels for labels in draws), np.zeros((N, N))) / len(draws)

    def together(self, pairs: ArrayLike) -> Array:
        """Probability (P,) that the two local parameters of each of `pairs` (P, 2) belong to one atom."""
        first, second = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        return np.asarray((self.labels[..., first] == self.labels[..., second]).mean((0, 1)))

    @cached_property
    def r_hat(self) -> dict[str, float]:
        """Split R-hat of K and of the objective (1 is agreement; see `modelweld.results.posterior.draws`)."""
        return {"K": split_r_hat(self.K), "objective": split_r_hat(self.objective)}

    @cached_property
    def effective_size(self) -> dict[str, float]:
        """Bulk effective size of K and of the objective."""
        return {"K": effective_size(self.K), "objective": effective_size(self.objective)}

    @property
    def caution(self) -> str:
        """What to know before these draws are relied upon; nothing if the chains agree."""
        worst = max(self.r_hat.values())
        if worst <= DISAGREE:
            return ""
        independent = np.nanmin([*self.effective_size.values(), float(self.K.size)])
        return (
            f"the chains do not agree (R-hat {worst:.2f}, above {DISAGREE:g}): {self.K.size:,} draws are worth about "
            f"{independent:,.0f} independent ones, so what is said of groups and matches may be off. Draw more: "
            "fusion.posterior.sample(draws=2000)."
        )

    def models(self, n: int, how: str | None = None, like: Any = None, *, seed: int = 0, **options: Any) -> list[Any]:
        """Fitted models of the sites' own library, of n draws: what they answer varies by as much as is not known.

        Each is what ``fusion.model(how)`` would be for one draw's matching and hyperparameters, draws spread evenly
        over those kept. Atoms are drawn given these, and values matched to them moved by as much (`Gaussian`,
        `NormalGamma`, `Counts`, `Rates` and `Proportions`; other families, and what is auxiliary such as covariances
        and numbers of points, stay at what the draw's matching makes of them). Warnings of single models are not given.

        Parameters
        ----------
        n : int
            How many, at most as many as there are draws.
        how, like, **options
            As in ``fusion.model``.
        seed : int
            Source of the atoms' draws.

        Examples
        --------
        A 90 % interval of the mean log density of new points:

        >>> import modelweld
        >>> from sklearn.mixture import GaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> data = [np.concatenate([rng.normal(m, 1.0, (50, 2)) for m in (0, 9)]) for _ in range(4)]
        >>> fusion = modelweld.fuse([GaussianMixture(2, random_state=0).fit(X) for X in data])
        >>> new = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (0, 9)])
        >>> scores = [model.score(new) for model in fusion.posterior.draws().models(40)]
        >>> low, high = np.quantile(scores, [0.05, 0.95])
        >>> bool(low < fusion.model().score(new) < high), bool(0.001 < high - low < 0.5)
        (True, True)
        """
        from modelweld.results.posterior.drawn_fusions import draw_matchings

        if self.fusion is None:
            raise InputError("models are drawn from what fusion.posterior.sample() or draws() returns.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)
            drawn = track(draw_matchings(self.fusion._fit, self, n, seed), "drawing models", n)
            return [self.fusion._at_draw(*draw).model(how, like, **options) for draw in drawn]

    def __repr__(self) -> str:
        chains, draws, N = self.labels.shape
        return (
            f"<Posterior of {N} values: {chains} chains of {draws} draws, K {self.K.mean():.1f}, "
            f"R-hat {max(self.r_hat.values()):.3f}>"
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self), ["K", "probability"], list(self.K_probabilities.items()))


def _interval(numbers: Index, level: float, shown: int | None) -> tuple[int, int]:
    low, high = np.quantile(numbers, [(1 - level) / 2, (1 + level) / 2])
    shown = round(low) if shown is None else shown
    return min(int(np.floor(low)), shown), max(int(np.ceil(high)), shown)


DISAGREE = 1.1
"""R-hat from which chains are said to disagree: together they are a tenth wider than each by itself, more than chance
does to two hundred draws (of 48 simulated fusions none was above 1.09)."""

FEWEST_DRAWS = 4
"""Halves of two draws are the least that have a variance."""


def split_r_hat(draws: ArrayLike) -> float:
    """Split R-hat of draws (chains, n): how much wider all half chains together are than each by itself.

    1 means that the chains agree; above 1.01 they should run longer. All draws equal give 1, chains that never move
    but differ give infinity.

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(split_r_hat(chains), 2), round(split_r_hat(chains + np.arange(4)[:, None]), 2)
    (1.0, 1.58)
    """
    within, total = _variances(_halves(draws))
    if total == 0:
        return 1.0
    return float(np.sqrt(total / within)) if within > 0 else np.inf


def effective_size(draws: ArrayLike) -> float:
    """Bulk effective size of draws (chains, n): how many independent draws would tell as much about the centre.

    Draws are replaced by the normal scores of their ranks, chains are cut in halves, and autocorrelations are added up
    by Geyer's initial monotone sequence. All draws equal give NaN: nothing was seen to move.

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 3500 < effective_size(chains) < 4500
    True
    """
    halves = _normal_scores(_halves(draws))
    m, n = halves.shape
    within, total = _variances(halves)
    if total == 0:
        return np.nan
    covariance = np.mean([_autocovariance(half) for half in halves], axis=0) * n / (n - 1)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(1)
    # sums of two neighbours are positive and fall, in truth: what does not is noise
    ends = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    time = -1.0 + 2.0 * pairs.sum()
    # chains that alternate can be worth more than independent ones, but not by more than their logarithm
    return float(m * n / max(time, 1.0 / np.log10(m * n)))


def _halves(draws: ArrayLike) -> Array:
    """Every chain's first and second half: (2 chains, n // 2), the middle one of an odd number left out."""
    chains = np.asarray(draws, dtype=np.float64)
    if chains.ndim != 2 or chains.shape[1] < FEWEST_DRAWS:
        raise InputError(f"draws must be (chains, n) with n at least {FEWEST_DRAWS}; found shape {chains.shape}.")
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _variances(halves: Array) -> tuple[float, float]:
    """Mean variance within, and the estimate of the whole variance from within and between."""
    n = halves.shape[1]
    within = float(halves.var(1, ddof=1).mean())
    between = float(halves.mean(1).var(ddof=1))
    return within, within * (n - 1) / n + between


def _normal_scores(halves: Array) -> Array:
    ranks = scipy.stats.rankdata(halves).reshape(halves.shape)
    return np.asarray(scipy.special.ndtri((ranks - 0.375) / (halves.size + 0.25)))


def _autocovariance(x: Array) -> Array:
    """At lags 0 ... n - 1, by the Fourier transform of the padded chain."""
    n = len(x)
    power = np.abs(np.fft.rfft(x - x.mean(), 2 * n)) ** 2
    return np.asarray(np.fft.irfft(power, 2 * n)[:n] / n)
