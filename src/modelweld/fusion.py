"""What comes back from `fuse`: the matching of every set, global arrays, hyperparameters, how the run went."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelweld.core.matching import Matching
from modelweld.core.values import Array
from modelweld.inputs.local_model import LocalModel
from modelweld.results.diagnostics.time_questions import TimeQuestions
from modelweld.threads import on_one_thread

if TYPE_CHECKING:
    from modelweld.kinds.mixture_reduction import Reduction
    from modelweld.report.group_table import GroupTable
    from modelweld.report.plot import Plot
    from modelweld.results.revision.add_remove import Recipe
    from modelweld.results.revision.slim import SlimFusion
    from modelweld.results.revision.stream import Stream


class Fusion(TimeQuestions):
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
        where another method made the fusion. `restored`: see `remove`.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> fusion.K, [labels.tolist() for labels in fusion.labels]
    (3, [[0, 1], [1], [0, 2]])
    """

    recipe: Recipe | None = None
    before: tuple[str, Fusion] | None = None

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

    def fused(self, how: str | None = None, *, features: Sequence[str] | None = None, **options: Any) -> LocalModel:
        """The fused parameters, arranged like a site's.

        Parameters
        ----------
        how : str, optional
            How they are made; each kind of model has its ways and a default: see `modelweld.kinds`.
        features : sequence of str, optional
            Which features, and in which order: that of a site's own table, ``df.columns``. Of mixtures, hidden Markov
            models and tables of classes also some of them, for a site that lacks the others. Default: all that any
            site has, in the order of most sites.
        **options
            For that way.
        """
        from modelweld.kinds import fuse_parameters

        return fuse_parameters(self, how, features, **options)

    def model(
        self, how: str | None = None, like: Any = None, *, features: Sequence[str] | None = None, **options: Any
    ) -> Any:
        """A fitted model of the sites' own library, from the fused parameters.

        Parameters
        ----------
        how : str, optional
            As in `fused`.
        like : class or str, optional
            Which class to write; default the one most sites sent.
        features, **options
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

        return write(self.fused(how, features=features, **options), like or like_most(self))

    def at_draw(self, matching: Matching, moved: Sequence[Mapping[str, Array]]) -> Fusion:
        """The fusion with another matching of its one set, and sites' arrays that follow it: `Posterior.models`."""
        from modelweld.kinds import kind_of

        kind = kind_of(self.models)
        given = [kind.move(model, arrays) for model, arrays in zip(self.models, moved, strict=True)]
        return self.with_(given=given, matchings={self.named_set()[0]: matching})

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

        return reduction(self.once())

    def price(self, how: str | None = None, K: int | None = None) -> float:
        """Nats per point that the fused mixture loses as a density against `union`, or one of K components.

        An estimate on drawn points, the same each time: its error is some hundredths.

        Examples
        --------
        >>> import modelweld
        >>> from modelweld.kinds.mixture import mixture
        >>> sites = [mixture([[m], [9.0]], [[w], [1.0]], [50, 50], counted=True) for m, w in ((0.0, 1.0), (0.1, 100.0))]
        >>> fusion = modelweld.fuse(sites)
        >>> [round(fusion.price(K=K), 1) for K in (1, 2, 3, 4)]
        [0.5, 0.2, 0.0, 0.0]
        """
        from modelweld.kinds.mixture_reduction import price

        return price(self, how, K)

    def union(self) -> Fusion:
        """All components of all sites' mixtures, none matched: hard to beat as a density, at the price of size."""
        from modelweld.kinds.mixture_reduction import union

        return union(self.once())

    def at(self, time: Any) -> Fusion:
        """The fusion as of one time, where sites have times: ``fusion.at("2024-03").model()`` is the model of that day.

        Atoms that probably live then, where they are then; counts and covariances of the sites nearest in time.
        """
        from modelweld.results.revision.add_remove import at_time

        return at_time(self, self.number_of_time(time))

    def stream(self, set_name: str | None = None) -> Stream:
        """Groups that come from now on, where sites have times: matched one by one, at a cost that does not grow."""
        from modelweld.results.revision.stream import Stream

        return Stream(self, set_name)

    @on_one_thread
    def add(self, model: Any, *, site: str = "", time: Any = None, refit: bool = True, seed: int = 0) -> Fusion:
        """The fusion with one more site: matched to what there is, then (`refit`) everything learned and swept on.

        Where sites have times, this one has a `time`, too; without `refit` nothing before it is touched.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> larger = fusion.add([[5.1, -4.9]], site="late")
        >>> larger.K, bool(larger.labels[-1][0] == larger.labels[2][1])
        (3, True)
        """
        from modelweld.results.revision.add_remove import with_site

        return with_site(self, model, site=site, time=time, refit=refit, seed=seed)

    @on_one_thread
    def remove(self, site: str | int, *, from_scratch: bool = False, refit: bool = True, seed: int = 0) -> Fusion:
        """The fusion with one site less: no value of it is left, and with `from_scratch` no influence either.

        Its values leave all sums, then (`refit`) hyperparameters are learned and sweeps go on *from the labels that it
        helped to find*, which need not lead to where fusing the others alone does. The site that was added last leaves
        the labels of before it came, or others with a better objective: ``settings["restored"]`` is true or false. (A
        fusion that was saved or pickled in between does not know what was before.)

        Parameters
        ----------
        site : str or int
            Name or number.
        from_scratch : bool
            Fuse the others from nothing, as `fuse` was asked to: the same answer as if the site had never been there.
            It takes as long, and is refused where that is not known (fusions loaded from a file, or reduced).
        refit, seed
            Whether to learn and sweep on; the order of sites in those sweeps.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]]
        >>> modelweld.fuse(sites).remove(2, from_scratch=True).objective == modelweld.fuse(sites[:2]).objective
        True
        """
        from modelweld.results.revision.add_remove import without_site

        return without_site(self, site, from_scratch=from_scratch, refit=refit, seed=seed)

    def slim(self) -> SlimFusion:
        """The fusion without local values, labels and names of sites: only sums of rows per atom are kept.

        Sites can still be added, and removed by owners who bring their values and labels; what else needs local
        values is refused. It takes a matching for which these sums are sufficient statistics: one set, no variance, no
        fragments, and a family whose rows do not depend on what is learned.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
        >>> fusion.slim().add([[5.1, -4.9]])
        <SlimFusion of 4 sites: 3 atoms>
        """
        from modelweld.results.revision.slim import slim

        return slim(self)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write everything to one safetensors file; ``modelweld.load`` reads it again, bit for bit."""
        from modelweld.files.fusion_file import save_fusion

        return save_fusion(self, path, force=force)

    def table(self, set_name: str | None = None, *, confidence: bool = False) -> GroupTable:
        """One row per group: who has it, how many points, and the mean of what sites sent in the features' units.

        Rows are numbered as `labels` are. The fused value stands beside a mean from which it differs visibly. Print it,
        let a notebook show it, or take ``.to_pandas()``.

        Parameters
        ----------
        set_name : str, optional
            Which set; needed when there are several.
        confidence : bool
            Whether to say how sure groups are, which takes seconds (at its first use on a machine more).
        """
        from modelweld.report.groups import groups_of

        return groups_of(self, set_name, confidence=confidence)

    @on_one_thread
    def report(
        self, path: str | os.PathLike[str], title: str = "Fusion report", *, force: bool = False, draws: bool = True
    ) -> Path:
        """Write one self-contained HTML page: what was fused, how sure that is, and what to look at.

        A file that is there already is replaced with `force` alone. Without `draws` it is written at once: confidences
        then take all other matches to be right, and means have standard errors instead of intervals.
        """
        from modelweld.report import write_report

        return write_report(self, path, title, force=force, draws=draws)

    @property
    def plot(self) -> Plot:
        """Figures for papers (extra `plot`): ``fusion.plot.sharing()``, `atoms`, `objective`, `confidence`, ...

        ``fusion.plot()`` draws them all on one sheet.
        """
        from modelweld.report.plot import Plot

        return Plot(self)

    def __repr__(self) -> str:
        from modelweld.report.text import several

        sets = ", ".join(
            f"{several(m.K, name)} from {len(m.stacked_labels)}"
            + (f" ({len(m.excluded)} excluded)" if len(m.excluded) else "")
            for name, m in self.matchings.items()
        )
        state = "" if self.converged else ", not converged"
        return f"<Fusion of {several(len(self.sites), 'site')}: {sets or 'classes by name'}{state}>"

    def _repr_html_(self) -> str:
        from modelweld.inputs.notebook import html_table

        if len(self.matchings) == 1:
            return self.table().html(repr(self))
        rows = [[name, m.K, len(m.stacked_labels), len(m.excluded)] for name, m in self.matchings.items()]
        return html_table(repr(self), ["set", "atoms", "of", "excluded"] if rows else [], rows)
