"""What can be asked of a fusion about itself: how sure each match is, how many atoms there are, who does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.progress import Progress, progress_to, track
from modelweld.results.diagnostics.matched import Matched
from modelweld.results.diagnostics.without_sites import (
    Found,
    atoms_with_oversized,
    draws_with_oversized,
    sources_of,
    with_oversized,
)
from modelweld.threads import on_one_thread

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.results.diagnostics.merge_value import MergeVerdict
    from modelweld.results.diagnostics.sites import SiteDiagnostics
    from modelweld.results.posterior.confidence import Confidence, How
    from modelweld.results.posterior.draws import Posterior
    from modelweld.results.posterior.holders import Sharing
    from modelweld.results.posterior.intervals import AtomIntervals, Intervals, NewSite


class Questions(Matched):
    """What can be asked about what was fused, and the scores and probabilities that answer: the ground of `Fusion`."""

    @on_one_thread
    def confidence(
        self, set_name: str | None = None, how: How | None = None, *, progress: Progress = None
    ) -> Confidence:
        """How sure each match is: one array (L_j,) per site, with `how` they were computed and what that means.

        The probability that a local parameter is right at the atom it was given: the share of draws from the posterior
        in which it is, atoms of fusion and draw being paired one to one by the parameters they have in common. Draws
        differ in all that may be wrong: the other matches (two atoms that are one, one that is two), noise, spread
        and the prior. How well that holds is measured in
        `experiments/verdicts/calibration.md`.

        Parameters
        ----------
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.
        how : {"drawn", "fixed", "conditional"}, optional
            "drawn" is the above, for all families of the library and several arrays, compiled at its first use on a
            machine; for families of your own whose `walked` says what to draw. "fixed" draws matchings at the learned
            hyperparameters (any family; slow, somewhat too sure). "conditional" takes all other sites' matches to be
            right (any family, fast, **overconfident**: to rank matches, not a promise). Default: "drawn" where that
            takes seconds (some hundred values, thousands of `Gaussian` ones), else "conditional".
        progress : bool or callable, optional
            As in `fuse`: the first call on a machine compiles the sampler.

        Returns
        -------
        Confidence
            A list of arrays, one per site, with attributes `how`, `meaning` and `r_hat`.

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
        from modelweld.results.posterior.conditional import confidences
        from modelweld.results.posterior.confidence import CHAINS, DRAWS, Confidence, shares_right
        from modelweld.results.posterior.metropolis import affordable_draws

        name, matching = self.named_set(set_name)
        if how not in (None, "drawn", "fixed", "conditional"):
            raise InputError(f"confidence: how is 'drawn', 'fixed' or 'conditional'; found {how!r}.")
        few, once = self.without_oversized(), self.once()
        if few is not self or once is not self:
            oversized = few is not self
            stated = (few if oversized else once).confidence(name, how, progress=progress)
            shares = np.concatenate(stated)
            shares = with_oversized(shares, self) if oversized else shares[sources_of(self, once, name).values]
            return Confidence(np.split(shares, matching.offsets[1:-1]), stated.how, stated.r_hat)
        parts = self.parts(name)
        with progress_to(progress, "computing confidences"):
            if how == "conditional" or (how is None and not affordable_draws(parts)):
                boards = track(parts, "computing confidences", len(parts))
                return Confidence(chain.from_iterable(confidences(part.board) for part in boards), "conditional")
            posterior = self.sample(DRAWS, CHAINS, set_name=name, fixed=True) if how == "fixed" else self.drawn(name)
        shares = shares_right(posterior, matching.stacked_labels)
        return Confidence(np.split(shares, matching.offsets[1:-1]), how or "drawn", posterior.r_hat)

    def sharing(
        self,
        level: float = 0.9,
        set_name: str | None = None,
        how: How | None = None,
        *,
        stated: Confidence | None = None,
    ) -> Sharing:
        """In how many sites each atom is, and how sure that is: expected numbers of sites, with intervals.

        `how` as in `confidence`, where "drawn" is the default as long as it takes seconds; `stated` is what that said,
        if it is at hand. Print it, let a notebook show it, or take ``.to_pandas()``.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]]
        >>> print(modelweld.fuse(sites).sharing(how="conditional"))
        atom  sites  expected  90% interval
           0      2       2.0        2 to 2
           1      2       2.0        2 to 2
           2      1       1.0        1 to 1
        """
        from modelweld.results.posterior.confidence import CHAINS, DRAWS
        from modelweld.results.posterior.holders import conditional_sharing, drawn_sharing
        from modelweld.results.posterior.intervals import check_level

        check_level(level)
        name, matching = self.named_set(set_name)
        stated = self.confidence(name, how) if stated is None else stated
        labels, offsets = matching.stacked_labels, matching.offsets
        if stated.how == "conditional":
            return conditional_sharing(stated, labels, offsets, level)
        draws = self.drawn(name) if stated.how == "drawn" else self.sample(DRAWS, CHAINS, set_name=name, fixed=True)
        return drawn_sharing(draws, labels, offsets, level, stated.how)

    def drawn(self, set_name: str | None = None) -> Posterior:
        """The draws of matching and hyperparameters that `confidence`, `site` and `new_site` rest on, made once."""
        from modelweld.results.posterior.confidence import CHAINS, FEWEST_DRAWS
        from modelweld.results.posterior.metropolis import affordable_draws

        name, _ = self.named_set(set_name)

        def draw() -> Posterior:
            few = self.without_oversized()
            if few is not self:
                return draws_with_oversized(few.drawn(name), self)
            parts = self.once().parts(name)
            draws = affordable_draws(parts) or FEWEST_DRAWS
            return self.sample(draws, CHAINS, set_name=name, fixed=False)

        return self.made_once(("draws", name), draw)

    @on_one_thread
    def conditional(self, site: int | str, set_name: str | None = None) -> Array:
        """Conditional probabilities (L_j, K + 1) of every atom for every local parameter of one site.

        The last column is that of a new atom. An atom that this site alone holds is such a one: its own column is
        zero. All other sites' matches are taken to be right, which is overconfident: see `confidence`.

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
        from modelweld.results.posterior.conditional import conditional

        name, _ = self.named_set(set_name)
        j, once = self.number_of(site), self.once()
        if once is self:
            return conditional(self.board(name), j)
        source = sources_of(self, once, name)
        table = once.conditional(int(source.sites[j]), name)
        own = source.values[self.board(name).values_of(j)] - once.matchings[name].offsets[source.sites[j]]
        return np.asarray(table[own][:, [*source.atoms, -1]])

    @on_one_thread
    def sample(
        self,
        draws: int = 500,
        chains: int = 4,
        seed: int = 0,
        set_name: str | None = None,
        warm_up: int | None = None,
        fixed: bool | None = None,
        *,
        progress: Progress = None,
    ) -> Posterior:
        """Draw matchings from their posterior, with noise, spread and prior where values are `Gaussian`.

        Answers how many atoms there are and which local parameters belong together, with probabilities that do not
        take the rest of the matching for granted.

        Parameters
        ----------
        draws : int
            Matchings kept per chain: every fifth sweep of compiled chains, else every sweep.
        chains : int
            The first, third, ... start from this fusion's matching; the second, sixth, ... with every value alone;
            the fourth, eighth, ... with the values of half of the groups alone.
        seed : int
            Source of the draws.
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.
        warm_up : int, optional
            Sweeps dropped at the beginning of every chain; default half of `draws`, or 1.5 times as many of compiled
            chains.
        fixed : bool, optional
            Whether hyperparameters stay at what was learned; default unless values are one array of `Gaussian`. False
            is refused where they cannot be drawn: see `confidence`.
        progress : bool or callable, optional
            As in `fuse`.

        Returns
        -------
        Posterior
            `co_assignment`, `K_probabilities`, `r_hat`, `effective_size`, `models`, ...

        Notes
        -----
        Do not trust it when `r_hat` is above 1.01 or `effective_size` below 100: draw more. Nor when chains may agree
        for the wrong reason: R-hat cannot see a region that no chain has found. Where hyperparameters are fixed and the
        fit took two atoms for one, so that the noise came out too large, every draw inherits that.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1], [5.0], [0.1]]])
        >>> posterior = fusion.sample(draws=50)
        >>> posterior.K_probabilities[3] > 0.7
        True
        >>> [bool(p > 0.5) for p in posterior.co_assignment[0]]          # the first value with all of them
        [True, False, False, False, True]
        """
        from modelweld.results.posterior.metropolis import chain_for, is_drawable
        from modelweld.results.posterior.sampler import check_lengths, sample

        # chains run over the canonical order, so that the order of arrival does not matter
        name, matching = self.named_set(set_name)
        check_lengths(draws, chains)
        few, once = self.without_oversized(), self.once()
        if few is not self:
            return draws_with_oversized(few.sample(draws, chains, seed, name, warm_up, fixed, progress=progress), self)
        if once is not self:
            posterior = once.sample(draws, chains, seed, name, warm_up, fixed, progress=progress)
            labels = posterior.labels[..., sources_of(self, once, name).values]
            return replace(posterior, labels=labels, fusion=cast("Fusion", self))
        board, order = self.arranged_board(name)
        if fixed is False and not is_drawable(board):
            raise InputError(
                f"hyperparameters of set {name!r} cannot be drawn: they are fixed, or no family lists any "
                "as `sampled`; fixed=True draws the matching alone."
            )
        with progress_to(progress, "drawing matchings"):
            kept = None if matching.kept is None else matching.kept[order]
            posterior = sample(board, draws, chains, seed, warm_up, chain_for(board, fixed), kept)
        return posterior.as_given(order, self.board(name), matching, cast("Fusion", self))

    def atom_intervals(self, level: float = 0.9, set_name: str | None = None) -> AtomIntervals:
        """Where the atoms are, with intervals that do not take the matching or the noise for granted.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> found = fusion.atom_intervals()
        >>> bool(((found.low < fusion.atoms) & (fusion.atoms < found.high)).all())
        True
        """
        from modelweld.results.posterior.intervals import atom_intervals

        return self._ask_of_atoms(atom_intervals, level, set_name)

    def site(self, site: int | str, level: float = 0.9, set_name: str | None = None) -> Intervals:
        """A site's own answer: what is true *there*, from what it sent, what others sent, and how well each is known.

        Partial pooling: a value with a large standard error moves towards its atom as the others have it, by as much
        as sites are seen to agree. Intervals integrate over noise and matching.

        Parameters
        ----------
        site : int or str
            Number or name of the site.
        level : float
            Probability with which an interval holds the truth.
        set_name : str, optional
            Which set, if several were matched.

        Returns
        -------
        Intervals
            `values`, `low` and `high` (L_j, D), in the order in which the site sent its parameters.
        """
        from modelweld.results.posterior.intervals import check_level, site_intervals

        check_level(level)
        name, _ = self.named_set(set_name)
        j, once = self.number_of(site), self.once()
        if once is not self:
            source = sources_of(self, once, name)
            own = source.values[self.board(name).values_of(j)] - once.matchings[name].offsets[source.sites[j]]
            return once.site(int(source.sites[j]), level, name).take(own)
        return site_intervals(self.board(name), self.drawn(name), j, level)

    def new_site(self, level: float = 0.9, set_name: str | None = None) -> NewSite:
        """What a site not seen yet would hold: which atoms with which probability, and where its values would lie.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [9.0, 9.0]], [[9.1, 9.0], [5.0, -5.0]]]
        >>> found = modelweld.fuse(sites).new_site()
        >>> [bool(p > q) for p, q in zip(found.probability, found.probability[1:])]  # atoms of four sites, two, one
        [True, True]
        """
        from modelweld.results.posterior.intervals import new_site

        return self._ask_of_atoms(new_site, level, set_name)

    def _ask_of_atoms(self, ask: Callable[..., Found], level: float, set_name: str | None) -> Found:
        """Of every atom: those of sites excluded for their number are their own, repeated sites count once."""
        from modelweld.results.posterior.intervals import check_level

        check_level(level)
        name, matching = self.named_set(set_name)
        few, once = self.without_oversized(), self.once()
        if few is not self:
            return atoms_with_oversized(few._ask_of_atoms(ask, level, name), self)
        if once is not self:
            return once._ask_of_atoms(ask, level, name).take(sources_of(self, once, name).atoms)
        return ask(self.board(name), self.drawn(name), matching.stacked_labels, level)

    @on_one_thread
    def diagnose(self, set_name: str | None = None, *, rate: float = 0.02) -> list[SiteDiagnostics]:
        """Per site: what it shares, how well the others predict it, its shift and its influence, and a warning.

        A fusion of honest sites has any warning with probability `rate`. Below four sites nobody is warned of: there is
        no majority to say who is off (`judged` is False). `modelweld.results.diagnostics.sites.diagnose` has the rest.
        """
        from modelweld.results.diagnostics.sites import diagnose

        return diagnose(self, set_name, rate=rate)

    @on_one_thread
    def worth_merging(
        self, set_name: str | None = None, *, level: float = 0.05, draws: int = 199, seed: int = 0
    ) -> MergeVerdict:
        """Whether the sites share anything, so that they should be fused at all; and what the matching gains.

        The p-value is from what sites sent, not from the matching: close pairs of values of different sites are counted
        and compared with sites turned at random. Sites that share nothing get a yes with probability `level`.
        `modelweld.results.diagnostics.merge_value.worth_merging` has the rest.
        """
        from modelweld.results.diagnostics.merge_value import worth_merging

        return worth_merging(self, set_name, level=level, draws=draws, seed=seed)
