"""What draws of matchings say: how many atoms, which values belong together, and whether the chains can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError, ModelweldWarning
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.board import Board
from modelweld.matching.moves import LARGEST_TABLE
from modelweld.matching.pieces.artefacts import artefacts
from modelweld.matching.result import Matching
from modelweld.posterior.convergence import DISAGREE, effective_size, split_r_hat
from modelweld.progress import track

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

MOVES = ("split", "merge", "value")
"""What acceptance is counted of."""

SPLIT, MERGE, VALUE = range(len(MOVES))


def number_of_atoms(board: Board, matching: Matching, labels: Index) -> int:
    """How many atoms a draw has by the rules of `Matching.K`: no outliers, no lone values that are junk, no artefacts.

    `labels` and the board have their values in the order in which they were given.
    """
    board = board.at(labels)
    counted = board.prior.is_atom(board.counts, matching.sites_fitted)
    if matching.kept is not None:
        counted &= np.isin(np.arange(len(counted)), board.labels[matching.kept])
    counted[[artefact.atom for artefact in artefacts(board)]] = False
    return int(counted.sum())


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of matchings, and of hyperparameters where these were drawn too.

    Attributes
    ----------
    labels : int array (chains, draws, N)
        A name for the atom of each local parameter, sites one after the other; names mean nothing across draws.
    K : int array (chains, draws)
        Number of atoms that would not be set aside: comparable with ``fusion.K``.
    objective : array (chains, draws)
        Log probability of the matching plus log evidence.
    acceptance : dict of str to float
        Share of proposed splits and merges that were accepted, and share of values that the groups' moves moved.
    hyperparameters : dict of str to array (chains, draws, ...), or None
        Draws of what was drawn with the matching: "noise", "spread", "mean", "trust", ...; None where it was fixed.
    fusion : Fusion or None
        Whose matchings these are.

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

    @property
    def K_probabilities(self) -> dict[int, float]:
        """Posterior probability of each number of atoms."""
        values, counts = np.unique(self.K, return_counts=True)
        return dict(zip(values.tolist(), (counts / self.K.size).tolist(), strict=True))

    def K_interval(self, level: float = 0.9) -> tuple[int, int]:
        """The interval that holds the number of atoms with at least this probability, as much left out either side."""
        ends = np.quantile(self.K, [(1 - level) / 2, (1 + level) / 2])
        return int(np.floor(ends[0])), int(np.ceil(ends[1]))

    def as_given(self, order: Index, board: Board, matching: Matching, fusion: Fusion | None = None) -> Posterior:
        """Draws whose value i is value ``order[i]`` as it was given, with K counted as the fusion's is."""
        labels = np.empty_like(self.labels)
        labels[..., order] = self.labels
        K = [[number_of_atoms(board, matching, draw) for draw in chain] for chain in labels]
        return replace(self, labels=labels, K=np.array(K), fusion=fusion)

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
        together = np.zeros((N, N))
        for labels in draws:
            together += labels[:, None] == labels
        return together / len(draws)

    def together(self, pairs: ArrayLike) -> Array:
        """Probability (P,) that the two local parameters of each of `pairs` (P, 2) belong to one atom."""
        first, second = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
        return np.asarray((self.labels[..., first] == self.labels[..., second]).mean((0, 1)))

    @cached_property
    def r_hat(self) -> dict[str, float]:
        """Split R-hat of K and of the objective (1 is agreement; see `modelweld.posterior.convergence`)."""
        return {"K": split_r_hat(self.K), "objective": split_r_hat(self.objective)}

    @cached_property
    def effective_size(self) -> dict[str, float]:
        """Bulk effective size of K and of the objective."""
        return {"K": effective_size(self.K), "objective": effective_size(self.objective)}

    @property
    def caution(self) -> str:
        """What to know before these draws are believed, in plain words; nothing if the chains agree."""
        worst = max(self.r_hat.values())
        if worst <= DISAGREE:
            return ""
        independent = np.nanmin([*self.effective_size.values(), float(self.K.size)])
        return (
            f"the chains do not agree (R-hat {worst:.2f}, above {DISAGREE:g}): {self.K.size:,} draws are worth about "
            f"{independent:,.0f} independent ones, so what is said of groups and matches may be off. Draw more: "
            "fusion.sample(draws=2000)."
        )

    def models(self, n: int, how: str | None = None, like: Any = None, *, seed: int = 0, **options: Any) -> list[Any]:
        """Fitted models of the sites' own library, of n draws: what they answer varies by as much as is not known.

        Each is what ``fusion.model(how)`` would be for one draw's matching and hyperparameters, draws spread evenly
        over those kept. Atoms are drawn given these, and values matched to them moved by as much (`Gaussian`,
        `NormalGamma`, `Counts`, `Rates` and `Proportions`; other families, and what rides along such as covariances and
        numbers of points, stay at what the draw's matching makes of them). Warnings of single models are not given.

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
        >>> scores = [model.score(new) for model in fusion.drawn().models(40)]
        >>> low, high = np.quantile(scores, [0.05, 0.95])
        >>> bool(low < fusion.model().score(new) < high), bool(0.001 < high - low < 0.5)
        (True, True)
        """
        from modelweld.posterior.drawn_fusions import drawn_fusions

        if self.fusion is None:
            raise InputError("models are drawn from what fusion.sample() or fusion.drawn() returns.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)
            drawn = drawn_fusions(self.fusion, self, n, seed)
            return [fusion.model(how, like, **options) for fusion in track(drawn, "drawing models", n)]

    def __repr__(self) -> str:
        chains, draws, N = self.labels.shape
        return (
            f"<Posterior of {N} values: {chains} chains of {draws} draws, K {self.K.mean():.1f}, "
            f"R-hat {max(self.r_hat.values()):.3f}>"
        )

    def _repr_html_(self) -> str:
        from modelweld.inputs.notebook import html_table

        return html_table(repr(self), ["K", "probability"], list(self.K_probabilities.items()))
