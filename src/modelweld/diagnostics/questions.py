"""What can be asked of a fusion about itself: how sure each match is, how many atoms there are, who does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index, arrange, stack_arrays
from modelweld.matching.board import Board
from modelweld.matching.result import Matching
from modelweld.matching.sets import stack_of
from modelweld.progress import track

if TYPE_CHECKING:
    from modelweld.diagnostics.merge_value import MergeVerdict
    from modelweld.diagnostics.sites import SiteDiagnostics
    from modelweld.posterior.draws import Posterior


class Questions:
    """What was fused and how it was matched, and the scores and probabilities that follow: the ground of `Fusion`.

    They are computed from a board per set, which is made once for all of them.
    """

    def __init__(
        self,
        models: Sequence[Any],
        sites: Sequence[str],
        matchings: Mapping[str, Matching],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.given = models
        self.sites = list(sites)
        self.matchings = dict(matchings)
        self.settings = dict(settings or {})
        self._boards: dict[tuple[str, bool], tuple[Board, Index]] = {}

    @cached_property
    def models(self) -> list[LocalModel]:
        """The local models that were fused."""
        if any(isinstance(m, LocalModel) for m in self.given):
            return list(self.given)
        stack = stack_arrays(self.given)
        return [
            LocalModel({"values": stack.values[a:b]}, {"values": ("atom", None)}, site=site)
            for (a, b), site in zip(pairwise(stack.offsets.tolist()), self.sites, strict=True)
        ]

    @property
    def matching(self) -> Matching:
        """The matching, when there is one set."""
        if len(self.matchings) != 1:
            raise InputError(
                f"this fusion matched the sets {list(self.matchings)}: ask fusion.matchings[name] for one of them."
            )
        return next(iter(self.matchings.values()))

    def confidence(self, set_name: str | None = None) -> list[Array]:
        """How sure each match is *if all other sites' matches are right*: one array (L_j,) per site.

        P(this local parameter belongs to the atom it was given | the matching of all other sites, hyperparameters).

        Being conditional, it is **overconfident**: it knows nothing of what could be wrong about the atoms themselves
        (two atoms that are one, one that is two, a noise learned from a wrong matching). Use it to rank matches
        within a fusion, not as a promise; `sample` answers the wider question, at the price of a sampler.

        Parameters
        ----------
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.

        Returns
        -------
        list of arrays
            Exact where few values compete for few atoms, else by belief propagation:
            see `modelweld.posterior.assignment_marginals`.

        Examples
        --------
        >>> import modelweld, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> atoms = rng.normal(0, 10, (4, 3))
        >>> sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0])]
        >>> fusion = modelweld.fuse(sites)
        >>> [site.round(2).tolist() for site in fusion.confidence()]
        [[1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0]]
        """
        from modelweld.posterior.conditional import confidence

        board, J = self.board(set_name), len(self.sites)
        return [confidence(board, j) for j in track(range(J), "computing confidences", J)]

    def conditional(self, site: int | str, set_name: str | None = None) -> Array:
        """Conditional probabilities (L_j, K + 1) of every atom for every local parameter of one site.

        The last column is that of a new atom. An atom that this site alone holds is such a one: its own column is
        zero. What was said of `confidence` holds here: all other sites' matches are taken to be right.

        Parameters
        ----------
        site : int or str
            Number or name of the site.
        set_name : str, optional
            Which set, if several were matched.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1], [5.0], [0.1]]])
        >>> fusion.conditional(0).round(2)
        array([[0.98, 0.  , 0.  , 0.02],
               [0.  , 0.98, 0.  , 0.02]])
        """
        from modelweld.posterior.conditional import conditional

        if site not in self.sites and site not in range(len(self.sites)):
            raise InputError(f"there is no site {site!r}: give a name or a number below {len(self.sites)}.")
        return conditional(self.board(set_name), self.sites.index(site) if isinstance(site, str) else site)

    def sample(
        self, draws: int = 500, chains: int = 4, seed: int = 0, set_name: str | None = None, warm_up: int | None = None
    ) -> Posterior:
        """Draw matchings from their posterior, hyperparameters fixed at what was learned.

        Answers how many atoms there are and which local parameters belong together, with probabilities that do not
        take the rest of the matching for granted.

        Parameters
        ----------
        draws : int
            Matchings kept per chain, one per sweep.
        chains : int
            The first, third, ... start from this fusion's matching; the second, sixth, ... with every value alone;
            the fourth, eighth, ... with the values of half of the groups alone.
        seed : int
            Source of the draws.
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.
        warm_up : int, optional
            Sweeps dropped at the beginning of every chain; default half of `draws`.

        Returns
        -------
        Posterior
            `co_assignment`, `K_probabilities`, `r_hat`, `effective_size`, ...

        Notes
        -----
        Do not trust it when `r_hat` is above 1.01 or `effective_size` below 100: draw more. Nor when chains may agree
        for the wrong reason: R-hat cannot see a region that no chain has found. And hyperparameters are fixed: if the
        fit took two atoms for one, so that the noise came out too large, every draw inherits that.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1], [5.0], [0.1]]])
        >>> posterior = fusion.sample(draws=50)
        >>> posterior.K_probabilities[3] > 0.9
        True
        >>> posterior.co_assignment[0].round(1)          # the first value with all of them
        array([1., 0., 0., 0., 1.])
        """
        from modelweld.posterior.sampler import sample

        # chains run over the canonical order, so that the order of arrival does not matter
        name, matching = self.named_set(set_name)
        board, order = self.arranged_board(name)
        posterior = sample(board, draws, chains, seed, warm_up)
        return posterior.as_given(order, self.board(name), matching)

    def diagnose(self, set_name: str | None = None, *, rate: float = 0.02) -> list[SiteDiagnostics]:
        """Per site: what it shares, how well the others predict it, its shift and its influence, and a warning.

        A fusion of honest sites has any warning with probability `rate`. Below four sites nobody is warned of: there is
        no majority to say who is off (`judged` is False). `modelweld.diagnostics.sites.diagnose` has the rest.
        """
        from modelweld.diagnostics.sites import diagnose

        return diagnose(self, set_name, rate=rate)

    def worth_merging(
        self, set_name: str | None = None, *, level: float = 0.05, draws: int = 199, seed: int = 0
    ) -> MergeVerdict:
        """Whether the sites share anything, so that they should be fused at all; and what the matching gains.

        The p-value is from what sites sent, not from the matching: close pairs of values of different sites are counted
        and compared with sites turned at random. Sites that share nothing get a yes with probability `level`.
        `modelweld.diagnostics.merge_value.worth_merging` has the rest.
        """
        from modelweld.diagnostics.merge_value import worth_merging

        return worth_merging(self, set_name, level=level, draws=draws, seed=seed)

    def named_set(self, set_name: str | None = None) -> tuple[str, Matching]:
        """The set of this name and its matching; None means the only one."""
        if set_name is None:
            return next(iter(self.matchings)), self.matching
        if set_name not in self.matchings:
            raise InputError(f"no set {set_name!r} was matched; there are {list(self.matchings)}.")
        return set_name, self.matchings[set_name]

    def board(self, set_name: str | None = None, *, canonical: bool = False) -> Board:
        """The board at the end of the fit, from which scores and probabilities are computed. Made once: do not move it.

        Values stand in the order given, or `canonical`, in one that depends on their content alone (`inputs.stack`).
        """
        name, _ = self.named_set(set_name)
        if (name, canonical) not in self._boards:
            self._boards[name, canonical] = self._make_board(name, canonical)
        return self._boards[name, canonical][0]

    def arranged_board(self, set_name: str) -> tuple[Board, Index]:
        """The canonical board, and where its values stand in the order given."""
        self.board(set_name, canonical=True)
        return self._boards[set_name, True]

    def _make_board(self, name: str, canonical: bool) -> tuple[Board, Index]:
        """The board of a set, and where its values stand in the order given."""
        matching = self.matchings[name]
        if matching.prior is None or not matching.families:
            raise InputError(
                f"this matching is a baseline's ({matching.engine}): without a family and a prior there are no scores "
                "and no probabilities."
            )
        stacks = [stack_of(self.models, key, name, self.matchings) for key in matching.families]
        order = np.arange(len(matching.stacked_labels))
        if canonical:
            stacks, order = arrange(stacks)
        families, prior = list(matching.families.values()), matching.prior.as_probability()
        return Board(stacks, families, prior, matching.copies, matching.stacked_labels[order]), order

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_boards": {}, "before": None}  # made again where they are asked for
