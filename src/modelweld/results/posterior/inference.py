"""Posterior inference: draws of matchings and hyperparameters, probabilities of matches, credible intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.progress import Progress, progress_to, track
from modelweld.results.fit_result import FitResult
from modelweld.results.posterior import intervals
from modelweld.results.posterior.conditional import conditional, confidences, pool_board
from modelweld.results.posterior.confidence import CHAINS, DRAWS, FEWEST_DRAWS, Confidence, How, shares_right
from modelweld.results.posterior.draws import Posterior
from modelweld.results.posterior.metropolis import affordable_draws, is_drawable, moves_of
from modelweld.results.posterior.sampler import check_lengths, sample
from modelweld.results.posterior.sharing_rates import Sharing, conditional_sharing, draw_sharing
from modelweld.results.without_sites import sources_of
from modelweld.threads import on_one_thread

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

Some = TypeVar("Some", bound=intervals.Intervals)


class Inference:
    """The posterior of a fusion, ``fusion.posterior``: draws, probabilities of matches, credible intervals.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1], [5.0], [0.1]]])
    >>> fusion.posterior.conditional(0).round(2)
    array([[0.99, 0.  , 0.  , 0.01],
           [0.  , 0.99, 0.  , 0.01]])
    """

    def __init__(self, fit: FitResult, fusion: Fusion | None = None) -> None:
        self._fit = fit
        self._fusion = fusion

    @on_one_thread
    def confidence(
        self, set_name: str | None = None, how: How | None = None, *, progress: Progress = None
    ) -> Confidence:
        """Posterior probability of each match: one array (L_j,) per site, with `how` it was computed.

        The probability that a local parameter is right at the atom it was given: the share of draws from the posterior
        in which it is, atoms of fusion and draw being paired one to one by the parameters they have in common. Draws
        differ in all that may be wrong: the other matches (two atoms that are one, one that is two), noise, spread
        and the prior. How well that holds is measured in `experiments/verdicts/worlds`.

        Parameters
        ----------
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.
        how : {"drawn", "fixed", "conditional"}, optional
            "drawn" is the above, for all families of the library and several arrays, compiled at its first use on a
            machine; for families of your own whose `sampled` lists what to draw. "fixed" draws matchings at the learned
            hyperparameters (any family; slow, somewhat too sure). "conditional" takes all other sites' matches to be
            right (any family, fast, **overconfident**: to rank matches, not a promise). Default: "drawn" where that
            takes seconds (some hundred values, thousands of `Gaussian` ones), else "conditional".
        progress : bool or callable, optional
            As in `fuse`: the first call on a machine compiles the sampler.

        Returns
        -------
        Confidence
            A list of arrays, one per site, with attributes `how`, `meaning` and `r_hat`.
        """
        name, matching = self._fit.find_set(set_name)
        if how not in (None, "drawn", "fixed", "conditional"):
            raise InputError(f"confidence: how is 'drawn', 'fixed' or 'conditional'; found {how!r}.")
        if (counted := self._fit.counted()) is not self._fit:
            stated = Inference(counted).confidence(name, how, progress=progress)
            shares = np.append(np.concatenate(stated), 1.0)  # the last: values of oversized sites are singletons
            shares = shares[sources_of(self._fit, counted, name).values]
            return Confidence(np.split(shares, matching.offsets[1:-1]), stated.how, stated.r_hat)
        parts = self._fit.parts(name)
        with progress_to(progress, "computing confidences"):
            if how == "conditional" or (how is None and not affordable_draws(parts)):
                boards = track(parts, "computing confidences", len(parts))
                return Confidence(chain.from_iterable(confidences(part.board) for part in boards), "conditional")
            posterior = self.sample(DRAWS, CHAINS, set_name=name, fixed=True) if how == "fixed" else self.draws(name)
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
        >>> print(modelweld.fuse(sites).posterior.sharing(how="conditional"))
        atom  sites  expected  90% interval
           0      2       2.0        2 to 2
           1      2       2.0        2 to 2
           2      1       1.0        1 to 1
        """
        intervals.check_level(level)
        name, matching = self._fit.find_set(set_name)
        stated = self.confidence(name, how) if stated is None else stated
        labels, offsets = matching.stacked_labels, matching.offsets
        if stated.how == "conditional":
            return conditional_sharing(stated, labels, offsets, level)
        draws = self.draws(name) if stated.how == "drawn" else self.sample(DRAWS, CHAINS, set_name=name, fixed=True)
        return draw_sharing(draws, labels, offsets, level, stated.how)

    def draws(self, set_name: str | None = None) -> Posterior:
        """The draws of matching and hyperparameters behind `confidence`, `site` and `new_site`, made once.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1], [5.0], [0.1]]])
        >>> fusion.posterior.draws() is fusion.posterior.draws()
        True
        """
        name, _ = self._fit.find_set(set_name)

        def draw() -> Posterior:
            draws = affordable_draws(self._fit.counted().parts(name)) or FEWEST_DRAWS
            return self.sample(draws, CHAINS, set_name=name, fixed=False)

        return self._fit.cache(("draws", name), draw)

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
        >>> fusion.posterior.conditional(0).round(2)
        array([[0.99, 0.  , 0.  , 0.01],
               [0.  , 0.99, 0.  , 0.01]])
        """
        name, _ = self._fit.find_set(set_name)
        j, once = self._fit.site_number(site), self._fit.drop_duplicates()
        if once is self._fit:
            return conditional(once.board(name), j)
        first, own, atoms = self._source(name, j)
        return np.asarray(Inference(once).conditional(first, name)[own][:, [*atoms, -1]])

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
            Matchings kept per chain: every fourth sweep of compiled chains, else every sweep.
        chains : int
            The first, third, ... start from this fusion's matching, the others with every value alone. Compiled ones
            that disagree are run again, twice as long, at most twice.
        seed : int
            Source of the draws.
        set_name : str, optional
            Which set, if several were matched. The sets matched before it are taken as they are.
        warm_up : int, optional
            Sweeps dropped at the beginning of every chain; default .4 of `draws`.
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
        >>> posterior = fusion.posterior.sample(draws=50)
        >>> posterior.K_probabilities[3] > 0.7
        True
        >>> [bool(p > 0.5) for p in posterior.co_assignment[0]]          # the first value with all of them
        [True, False, False, False, True]
        """
        # chains run over the canonical order, so that the order of arrival does not matter
        name, matching = self._fit.find_set(set_name)
        check_lengths(draws, chains)
        fit, counted = self._fit, self._fit.counted()
        if counted is not fit:
            posterior = Inference(counted).sample(draws, chains, seed, name, warm_up, fixed, progress=progress)
            of = sources_of(fit, counted, name).values
            singletons = 2 * len(of) + np.arange(len(of))  # names beyond those in use
            labels = np.where(of < 0, singletons, posterior.labels[..., of])
            return replace(posterior, labels=labels, fusion=self._fusion)
        board, order = fit.canonical_board(name)
        if fixed is False and not is_drawable(board):
            raise InputError(
                f"hyperparameters of set {name!r} cannot be drawn: they are fixed, or no family lists any "
                "as `sampled`; fixed=True draws the matching alone."
            )
        joined = matching.common_splits > 0  # what all sites split alike stays one: no draw would find it again
        board, cell = pool_board(board, common=True) if joined else (board, np.arange(len(order)))
        with progress_to(progress, "drawing matchings"):
            kept = None if matching.kept is None else np.bincount(cell, matching.kept[order]) > 0
            posterior = sample(board, draws, chains, seed, warm_up, lambda part: moves_of(part, fixed), kept)
            posterior = replace(posterior, labels=posterior.labels[..., cell])
        return posterior.as_given(order, matching, self._fusion)

    def atom_intervals(self, level: float = 0.9, set_name: str | None = None) -> intervals.AtomIntervals:
        """Where the atoms are, with intervals that do not take the matching or the noise for granted.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> found = fusion.posterior.atom_intervals()
        >>> bool(((found.low < fusion.atoms) & (fusion.atoms < found.high)).all())
        True
        """
        return self._of_atoms(intervals.atom_intervals, level, set_name)

    def site(self, site: int | str, level: float = 0.9, set_name: str | None = None) -> intervals.Intervals:
        """Shrinkage estimates of one site's parameters: what is true *there*, from what it and the others sent.

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

        Examples
        --------
        >>> import modelweld
        >>> axes = {"x": ("atom", None)}
        >>> values = ([[0.0], [9.0]], [[0.1], [9.1]], [[0.2], [8.9]])
        >>> sites = [modelweld.LocalModel({"x": v}, axes, variance={"x": [[1.0], [0.01]]}) for v in values]
        >>> found = modelweld.fuse(sites).posterior.site(0)
        >>> bool(((found.low < found.values) & (found.values < found.high)).all())
        True
        """
        intervals.check_level(level)
        name, _ = self._fit.find_set(set_name)
        j, once = self._fit.site_number(site), self._fit.drop_duplicates()
        if once is not self._fit:
            first, own, _ = self._source(name, j)
            return Inference(once).site(first, level, name).take(own)
        return intervals.site_intervals(once.board(name), self.draws(name), j, level)

    def new_site(self, level: float = 0.9, set_name: str | None = None) -> intervals.NewSite:
        """What a site not seen yet would hold: which atoms with which probability, and where its values would lie.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [9.0, 9.0]], [[9.1, 9.0], [5.0, -5.0]]]
        >>> found = modelweld.fuse(sites).posterior.new_site()
        >>> [bool(p > q) for p, q in zip(found.probability, found.probability[1:])]  # atoms of four sites, two, one
        [True, True]
        """
        return self._of_atoms(intervals.new_site, level, set_name)

    def _of_atoms(self, summarise: Callable[..., Some], level: float, set_name: str | None) -> Some:
        """A summary of every atom; atoms of oversized sites are their own, duplicates count once."""
        intervals.check_level(level)
        name, matching = self._fit.find_set(set_name)
        if (counted := self._fit.counted()) is not self._fit:
            found = Inference(counted)._of_atoms(summarise, level, name)
            return found.take(sources_of(self._fit, counted, name).atoms)
        return summarise(self._fit.board(name), self.draws(name), matching.stacked_labels, level)

    def _source(self, name: str, j: int) -> tuple[int, Index, Index]:
        """The site of which site j is a duplicate, where its values stand there, and the number of each atom there."""
        once = self._fit.drop_duplicates()
        source = sources_of(self._fit, once, name)
        first = int(source.sites[j])
        own = source.values[self._fit.board(name).values_of(j)] - once.matchings[name].offsets[first]
        return first, own, source.atoms
