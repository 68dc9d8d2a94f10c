"""What comes back from `fuse`: the matching of every set, global arrays, hyperparameters, how the run went."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index, Key, arranged, stack_arrays
from modelweld.matching.board import Board
from modelweld.matching.global_arrays import GlobalArrays
from modelweld.matching.result import Matching
from modelweld.matching.sets import stack_of
from modelweld.progress import told

if TYPE_CHECKING:
    from modelweld.diagnostics.merge_value import MergeVerdict
    from modelweld.diagnostics.sites import SiteDiagnostics
    from modelweld.kinds.mixture_reduction import Reduction
    from modelweld.posterior.draws import Posterior
    from modelweld.report.plot import Plot
    from modelweld.revision.slim import SlimFusion

Thing = TypeVar("Thing")


class Fusion:
    """The result of `fuse`.

    With one set (the usual case) the matching's fields are the fusion's own: ``fusion.labels``, ``fusion.atoms``,
    ``fusion.K``. With several sets, ask ``fusion.matchings[name]``.

    Attributes
    ----------
    sites : list of str
        Names of the sites, in the order in which they were given.
    matchings : dict of str to Matching
        One per set, in the order in which they were matched.
    settings : dict
        What `fuse` was asked for, in words and plain values; `revised` counts the sites added or removed since. Empty
        where another method made the fusion.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> fusion.K, [labels.tolist() for labels in fusion.labels]
    (3, [[0, 1], [1], [0, 2]])
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

    def with_(
        self,
        *,
        given: Sequence[Any] | None = None,
        sites: Sequence[str] | None = None,
        matchings: Mapping[str, Matching] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fusion:
        """A fusion like this one, with other models, sites, matchings or settings."""
        return Fusion(
            self.given if given is None else given,
            self.sites if sites is None else sites,
            self.matchings if matchings is None else matchings,
            self.settings if settings is None else settings,
        )

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

    @property
    def K(self) -> int:
        """Number of atoms that are not set aside."""
        return self.matching.K

    @property
    def labels(self) -> list[Index]:
        """Atom of each local parameter, one array per site."""
        return self.matching.labels

    @property
    def counts(self) -> Index:
        """Number of sites that hold each atom."""
        return self.matching.counts

    @property
    def atoms(self) -> Array:
        """Global values of the one array that was matched, one row per atom: K, then those set aside."""
        return next(iter(self._one_array(self.matching.values).values()))

    @property
    def family(self) -> Family:
        """The family, with learned hyperparameters, of the one array that was matched."""
        return next(iter(self._one_array(self.matching.families).values()))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        prior = {} if self.matching.prior is None else self.matching.prior.parameters()
        return {**self.family.learned(), **prior}

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence; over several sets, their sum."""
        return sum(m.objective for m in self.matchings.values())

    @property
    def history(self) -> tuple[float, ...]:
        """The objective after every sweep and every update."""
        return self.matching.history

    @property
    def sweeps(self) -> int:
        """Number of sweeps, the idle last one included."""
        return self.matching.sweeps

    @property
    def converged(self) -> bool:
        """Whether every set's last sweep changed nothing."""
        return all(m.converged for m in self.matchings.values())

    def fused(self, how: str | None = None, **options: Any) -> LocalModel:
        """The fused parameters, arranged like a site's.

        Parameters
        ----------
        how : str, optional
            How they are made; each kind of model has its ways and a default: see `modelweld.kinds`.
        **options
            For that way.
        """
        from modelweld.kinds import fused

        return fused(self, how, **options)

    def model(self, how: str | None = None, like: Any = None, **options: Any) -> Any:
        """A fitted model of the sites' own library, from the fused parameters.

        Parameters
        ----------
        how : str, optional
            As in `fused`.
        like : class or str, optional
            Which class to write; default the one most sites sent.
        **options
            As in `fused`.

        Examples
        --------
        >>> import numpy as np, modelweld
        >>> from sklearn.mixture import GaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> data = [np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in means]) for means in ([0, 9], [9, -9])]
        >>> sites = [GaussianMixture(2, random_state=0).fit(X) for X in data]
        >>> mixture = modelweld.fuse(sites).model()
        >>> mixture.predict([[0.0, 0.0], [9.0, 9.0], [-9.0, -9.0]]).tolist()
        [2, 0, 1]
        """
        from modelweld.libraries import like_most, write

        return write(self.fused(how, **options), like or like_most(self))

    def reduce(self, K: int) -> Fusion:
        """The same mixtures with K components, for their density alone: see `reduction` for all K at once.

        Examples
        --------
        >>> import modelweld
        >>> from modelweld.kinds.mixture import mixture
        >>> ones = [[1.0], [1.0]]
        >>> sites = [mixture(means, ones, [5, 5], counted=True) for means in ([[0.0], [9.0]], [[0.5], [7.0]])]
        >>> modelweld.fuse(sites).reduce(2).model(how="moments", like="GaussianMixture").means_.round(2).tolist()
        [[0.25], [8.0]]
        """
        return self.reduction().at(K)

    def reduction(self) -> Reduction:
        """The whole way from the union of the sites' mixtures to one component, with the loss at every K."""
        from modelweld.kinds.mixture_reduction import reduction

        return reduction(self)

    def union(self) -> Fusion:
        """All components of all sites' mixtures, none matched: hard to beat as a density, at the price of size."""
        from modelweld.kinds.mixture_reduction import union

        return union(self)

    def add(self, model: Any, *, site: str = "", refit: bool = True, seed: int = 0) -> Fusion:
        """The fusion with one more site: matched to what there is, then (`refit`) everything learned and swept on.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> larger = fusion.add([[5.1, -4.9]], site="late")
        >>> larger.K, bool(larger.labels[-1][0] == larger.labels[2][1])
        (3, True)
        """
        from modelweld.revision.add_remove import with_site

        return with_site(self, model, site=site, refit=refit, seed=seed)

    def remove(self, site: str | int, *, refit: bool = True, seed: int = 0) -> Fusion:
        """The fusion with one site less, by name or number; nothing that the site sent is left in it."""
        from modelweld.revision.add_remove import without_site

        return without_site(self, site, refit=refit, seed=seed)

    def slim(self) -> SlimFusion:
        """The fusion without local values, labels and names of sites: only sums of rows per atom are kept.

        Sites can still be added, and removed by owners who bring their values and labels; what else needs local
        values is refused. Only where sums tell all: one set, no variance, no pieces, and a family whose rows do not
        depend on what is learned.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> fusion.slim().add([[5.1, -4.9]])
        <SlimFusion of 4 sites: 3 atoms>
        """
        from modelweld.revision.slim import slim

        return slim(self)

    def array(self, name: str) -> Array:
        """Global array `name`, its set axes in global order."""
        return self._arrays.array(name)

    def total(self, name: str) -> Array:
        """Sum over sites of array `name`, added through the matching (for counts)."""
        return self._arrays.total(name)

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry of array `name`; NaN where none has."""
        return self._arrays.average(name)

    @property
    def _arrays(self) -> GlobalArrays:
        return GlobalArrays(self.models, self.matchings)

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
        return [confidence(board, j) for j in told(range(J), "computing confidences", J)]

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
        >>> import modelweld, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> atoms = rng.normal(0, 10, (4, 3))
        >>> sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0])]
        >>> fusion = modelweld.fuse(sites)
        >>> fusion.conditional(0).round(2)
        array([[0., 0., 1., 0., 0.],
               [0., 1., 0., 0., 0.]])
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
        >>> import modelweld, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> atoms = rng.normal(0, 10, (4, 3))
        >>> sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0])]
        >>> fusion = modelweld.fuse(sites)
        >>> posterior = fusion.sample(draws=50)
        >>> posterior.K_probabilities[4] > 0.9
        True
        >>> posterior.co_assignment[0].round(1)          # the first value with all of them
        array([1., 0., 0., 0., 0., 0., 1.])
        """
        from modelweld.posterior.sampler import sample

        # chains run over the canonical order, so that the order of arrival does not matter
        name, matching = self.named_set(set_name)
        posterior = sample(self.board(name, canonical=True), draws, chains, seed, warm_up)
        _, order = self._boards[name, True]
        return posterior.as_given(order, self.board(name), matching)

    def diagnose(self, set_name: str | None = None) -> list[SiteDiagnostics]:
        """Per site: what it shares, how well the others predict it, its shift and its influence, and a warning."""
        from modelweld.diagnostics.sites import diagnose

        return diagnose(self, set_name)

    def worth_merging(self, set_name: str | None = None) -> MergeVerdict:
        """Whether the sites should be fused at all: the gain in log evidence over keeping them apart."""
        from modelweld.diagnostics.merge_value import worth_merging

        return worth_merging(self, set_name)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write everything to one safetensors file; ``modelweld.load`` reads it again, bit for bit."""
        from modelweld.files.fusion_file import save_fusion

        return save_fusion(self, path, force=force)

    def report(self, path: str | os.PathLike[str], title: str = "Fusion report") -> Path:
        """Write one self-contained HTML page: what was fused, how sure that is, and what to look at."""
        from modelweld.report import write_report

        return write_report(self, path, title)

    @property
    def plot(self) -> Plot:
        """Figures for papers: ``fusion.plot.sharing()``, `atoms`, `objective`, `confidence` (extra `plot`)."""
        from modelweld.report.plot import Plot

        return Plot(self)

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
            self._boards[name, canonical] = self._made_board(name, canonical)
        return self._boards[name, canonical][0]

    def _made_board(self, name: str, canonical: bool) -> tuple[Board, Index]:
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
            stacks, order = arranged(stacks)
        families, prior = list(matching.families.values()), matching.prior.as_probability()
        return Board(stacks, families, prior, matching.copies, matching.stacked_labels[order]), order

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_boards": {}}  # made again where they are asked for

    @staticmethod
    def _one_array(by_name: Mapping[Key, Thing]) -> Mapping[Key, Thing]:
        if len(by_name) != 1:
            raise InputError(
                f"several arrays were matched together, {list(by_name)}: ask fusion.array(name) for values and "
                "fusion.matching.families[name] for hyperparameters."
            )
        return by_name

    def __repr__(self) -> str:
        sets = ", ".join(
            f"{m.K} {name}s from {len(m.stacked_labels)}"
            + (f" ({len(m.set_aside)} set aside)" if len(m.set_aside) else "")
            for name, m in self.matchings.items()
        )
        state = "" if self.converged else ", not converged"
        return f"<Fusion of {len(self.sites)} sites: {sets}{state}>"
