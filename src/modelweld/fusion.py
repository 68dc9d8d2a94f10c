"""What comes back from `fuse`: the matching of every set, global arrays, hyperparameters, how the run went."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index, arranged, stack_arrays
from modelweld.matching.result import Matching, arrays_of
from modelweld.progress import told

if TYPE_CHECKING:
    from modelweld.diagnostics.merge_value import MergeVerdict
    from modelweld.diagnostics.sites import SiteDiagnostics
    from modelweld.kinds.mixture_reduction import Reduction
    from modelweld.matching.algorithm1 import Board
    from modelweld.posterior.draws import Posterior
    from modelweld.report.plot import Plot
    from modelweld.revision.slim import SlimFusion


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
        family: Family = next(iter(self._one_array(self.matching.families).values()))
        return family

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        prior = {} if self.matching.prior is None else vars(self.matching.prior)
        return {**self.family.learned(), **{name: value for name, value in prior.items() if isinstance(value, float)}}

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
        if name not in self.models[0].axes:
            raise InputError(f"no array {name!r} was fused; there are {sorted(self.models[0].axes)}.")
        axes = self.models[0].axes[name]
        for set_name in reversed([axis for axis in axes if axis is not None]):
            matching = self.matchings[set_name]
            for key, values in matching.values.items():
                if name in arrays_of(key):
                    position = axes.index(set_name)
                    before = arrays_of(key)[: arrays_of(key).index(name)]
                    first = sum(math.prod(self._row_shape(other, set_name)) for other in before)
                    shape = self._row_shape(name, set_name)
                    columns = values[:, first : first + math.prod(shape)]
                    return np.moveaxis(columns.reshape(len(matching.counts), *shape), 0, position)
        return self.average(name)

    def total(self, name: str) -> Array:
        """Sum over sites of array `name`, added through the matching (for counts)."""
        result = np.zeros(self._global_shape(name))
        for j, model in enumerate(self.models):
            np.add.at(result, self._places(j, name), np.asarray(model.arrays[name]))
        return result

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry of array `name`; NaN where none has."""
        number, total = np.zeros((2, *self._global_shape(name)))
        for j, model in enumerate(self.models):
            values = np.asarray(model.arrays[name])
            seen = np.asarray(model.weight.get(name, np.ones(values.shape))) > 0
            np.add.at(number, self._places(j, name), seen)
            np.add.at(total, self._places(j, name), np.where(seen, values, 0.0))
        return np.where(number > 0, total / np.maximum(number, 1.0), np.nan)

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

        board, _ = self._board(set_name)
        J = len(self.sites)
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
        board, _ = self._board(set_name)
        return conditional(board, self.sites.index(site) if isinstance(site, str) else site)

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
        from modelweld.posterior.draws import number_of_atoms
        from modelweld.posterior.sampler import sample

        # chains run over the canonical order, so that the order of arrival does not matter
        board, rows = self._board(set_name, canonical=True)
        posterior = sample(board, draws, chains, seed, warm_up)
        labels = np.empty_like(posterior.labels)
        labels[..., rows] = posterior.labels
        board, _ = self._board(set_name)
        matching = self.matching if set_name is None else self.matchings[set_name]
        K = [[number_of_atoms(board, matching, draw) for draw in chain] for chain in labels]
        return replace(posterior, labels=labels, K=np.array(K))

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

    def _board(self, set_name: str | None, canonical: bool = False) -> tuple[Board, Index]:
        """The board on which a set was matched, as it was left, and where its rows stand in the order given."""
        from modelweld.inputs.sets import stack_of
        from modelweld.matching.algorithm1 import Board
        from modelweld.priors.beta_bernoulli import BetaBernoulli

        if set_name is not None and set_name not in self.matchings:
            raise InputError(f"no set {set_name!r} was matched; there are {list(self.matchings)}.")
        matching = self.matching if set_name is None else self.matchings[set_name]
        name_of_set = next(iter(self.matchings)) if set_name is None else set_name
        prior = matching.prior
        if prior is None or not matching.families:
            raise InputError(
                f"this matching is a baseline's ({matching.engine}): without a family and a prior there are no scores "
                "and no probabilities."
            )
        if isinstance(prior, BetaBernoulli):
            prior = replace(prior, form="exact")  # the only form that is a probability
        stacks = [stack_of(self.models, name, name_of_set, self.matchings) for name in matching.families]
        rows = np.arange(len(matching.stacked_labels))
        if canonical:
            stacks, rows = arranged(stacks)
        board = Board(stacks, list(matching.families.values()), prior, matching.copies)
        board.restore((matching.stacked_labels[rows], *board.state()[1:]))
        return board, rows

    def _row_shape(self, name: str, set_name: str) -> tuple[int, ...]:
        """Shape of one member of a set in a global array."""
        position = self.models[0].axes[name].index(set_name)
        return tuple(n for i, n in enumerate(self._global_shape(name)) if i != position)

    def _global_shape(self, name: str) -> tuple[int, ...]:
        shape = np.shape(self.models[0].arrays[name])
        axes = self.models[0].axes[name]
        return tuple(
            n if axis is None else len(self.matchings[axis].counts) for n, axis in zip(shape, axes, strict=True)
        )

    def _places(self, j: int, name: str) -> tuple[Any, ...]:
        """Where site j's entries of array `name` belong in the global array."""
        model = self.models[j]
        return np.ix_(
            *(
                np.arange(n) if axis is None else self.matchings[axis].labels[j]
                for n, axis in zip(np.shape(model.arrays[name]), model.axes[name], strict=True)
            )
        )

    @staticmethod
    def _one_array(by_name: Mapping[Any, Any]) -> Mapping[Any, Any]:
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
