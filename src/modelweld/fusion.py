"""What `fuse` returns: the matching of every set, fused models, and groups of methods for all that is asked of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import modelweld
from modelweld.core.matching import Matching
from modelweld.core.values import Array
from modelweld.fit.effects.words import SiteEffect, list_effects
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.notebook import html_table
from modelweld.inputs.sets import columns_of
from modelweld.kinds import kind_of
from modelweld.kinds.fused_parts import fuse_parameters
from modelweld.libraries import write
from modelweld.libraries.known_classes import like_most
from modelweld.progress import Progress
from modelweld.results.diagnostics.merge_value import MergeVerdict, worth_merging
from modelweld.results.diagnostics.notes import Diagnosis
from modelweld.results.fit_result import FitResult
from modelweld.results.global_arrays import ByMatchings
from modelweld.revision.add_remove import with_site, without_site
from modelweld.revision.slim_fusion import SlimFusion, slim
from modelweld.threads import on_one_thread
from modelweld.time.evolution import Evolution

if TYPE_CHECKING:
    import modelweld.report.groups
    import modelweld.report.text
    from modelweld.kinds.mixture_reduction import Density
    from modelweld.report.group_table import GroupTable
    from modelweld.report.plot import Plot
    from modelweld.results.posterior.confidence import Confidence, How
    from modelweld.results.posterior.inference import Inference


class Parameters:
    """Fused parameters, ``fusion.parameters``: all of them by a call, single arrays by name.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.mixture import mixture
    >>> sites = [mixture([[m], [9.0]], [[1.0], [1.0]], [50, 50], counted=True) for m in (0.0, 0.2)]
    >>> parameters = modelweld.fuse(sites).parameters
    >>> parameters("moments").arrays["means"].round(2).tolist(), parameters.total("counts").tolist()
    ([[0.1], [9.0]], [100.0, 100.0])
    """

    def __init__(self, fit: FitResult) -> None:
        self._fit = fit

    def __call__(self, how: str | None = None, *, features: Sequence[str] | None = None, **options: Any) -> LocalModel:
        """All fused parameters, arranged like a site's.

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
        return fuse_parameters(self._fit, how, features, **options)

    def estimate(self, name: str) -> Array:
        """Global array `name`, its set axes in global order: estimates of atoms, averages of auxiliary arrays."""
        return self._fit.array(name)

    def total(self, name: str) -> Array:
        """Sum over sites of array `name`, added through the matching (for counts)."""
        return self._fit.total(name)

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry of array `name`; NaN where none has."""
        return self._fit.average(name)

    @property
    def signs(self) -> list[Array]:
        """Of each local parameter, one array per site: -1 where it agrees with its atom turned round, else 1.

        Ones where values have signs of their own; see ``Directions(axial=True)`` and `Factors`. With several sets, of
        the first in which some have none.
        """
        return self._fit.signs


@dataclass(eq=False, repr=False)
class Fusion(ByMatchings):
    """The result of `fuse`.

    With one set (the usual case) the matching's fields are the fusion's own: ``fusion.labels``, ``fusion.atoms``,
    ``fusion.K``. With several sets, ask ``fusion.matchings[name]``.

    Attributes
    ----------
    sites : list of str
        Names of the sites, in the order in which they were given.
    matchings : dict of str to Matching
        One per set, in the order in which they were matched.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> fusion.K, [labels.tolist() for labels in fusion.labels]
    (3, [[0, 1], [1], [0, 2]])
    """

    _fit: FitResult

    @property
    def sites(self) -> list[str]:
        """Names of the sites, in the order in which they were given."""
        return self._fit.sites

    @property
    def matchings(self) -> dict[str, Matching]:
        """The matching of each set."""
        return self._fit.matchings

    @property
    def site_effects(self) -> list[SiteEffect]:
        """What sites differed by, feature by feature, and was corrected: ``v = scale * y + offset``.

        Examples
        --------
        >>> import modelweld, numpy as np, warnings
        >>> warnings.simplefilter("ignore", modelweld.SiteEffectWarning)
        >>> rng = np.random.default_rng(0)
        >>> atoms = rng.normal(0, 10, (6, 3))
        >>> sites = [atoms + rng.normal(0, 0.1, (6, 3)) + [0, 0, 4 * (j == 3)] for j in range(5)]
        >>> [(effect.site, effect.feature, round(effect.offset)) for effect in modelweld.fuse(sites).site_effects]
        [('3', 'dimension 2', 4)]
        """
        effects = self._fit.effects
        if effects is None:
            return []
        name, matching = next((name, m) for name, m in self.matchings.items() if m.effects is not None)
        key = next(iter(matching.families))
        return list_effects(effects, self.sites, columns_of(self._fit.first_model, key, name, {}, in_words=True))

    @property
    def parameters(self) -> Parameters:
        """The fused parameters, ``fusion.parameters()``, and single arrays: `estimate`, `total`, `average`, `signs`."""
        return Parameters(self._fit)

    @property
    def posterior(self) -> Inference:
        """Posterior draws, probabilities of matches, credible intervals: `sample`, `draws`, `site`, ..."""
        from modelweld.results.posterior.inference import Inference  # compiled

        return Inference(self._fit, self)

    @property
    def diagnosis(self) -> Diagnosis:
        """Which sites do not fit, what was learned, how the run went: `sites`, `hyperparameters`, `converged`, ..."""
        return Diagnosis(self._fit)

    @property
    def timeline(self) -> Evolution:
        """Where atoms were when, if sites have times: `path`, `at`, `forecast`, `lifetimes`, `stream`."""
        return Evolution(self._fit, Fusion)

    @property
    def density(self) -> Density:
        """Fused mixtures as densities: `union`, `reduce`, `reduction`, `loss`."""
        from modelweld.kinds.mixture_reduction import Density

        return Density(self._fit, Fusion)

    def model(
        self,
        how: str | None = None,
        like: Any = None,
        *,
        features: Sequence[str] | None = None,
        site: int | str | None = None,
        **options: Any,
    ) -> Any:
        """A fitted model of the sites' own library, from the fused parameters.

        Parameters
        ----------
        how : str, optional
            As in `parameters`.
        like : class or str, optional
            Which class to write; default the one most sites sent.
        site : int or str, optional
            On the scale of this site's own values, where it differs from the others (`site_effects`).
        features, **options
            As in `parameters`.

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
        fused = fuse_parameters(self._fit, how, features, site, **options)
        return write(fused, like or like_most(self._fit.models))

    def _at_draw(self, matching: Matching, moved: Sequence[Mapping[str, Array]]) -> Fusion:
        """The fusion with another matching of its one set, and sites' arrays that follow it: `Posterior.models`."""
        fit = self._fit.drop_duplicates()
        kind = kind_of(fit.models)
        given = [kind.move(model, arrays) for model, arrays in zip(fit.models, moved, strict=True)]
        return Fusion(fit.with_(given=given, matchings={fit.find_set()[0]: matching}))

    def confidence(
        self, set_name: str | None = None, how: How | None = None, *, progress: Progress = None
    ) -> Confidence:
        """Posterior probability of each match: one array (L_j,) per site. See ``fusion.posterior.confidence``.

        `how` is "drawn", "fixed" or "conditional"; default: by draws where that takes seconds.

        Examples
        --------
        >>> import modelweld, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> atoms = rng.normal(0, 10, (4, 3))
        >>> sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0])]
        >>> [site.round(2).tolist() for site in modelweld.fuse(sites).confidence()]
        [[1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0]]
        """
        return self.posterior.confidence(set_name, how, progress=progress)

    @on_one_thread
    def worth_merging(
        self, set_name: str | None = None, *, level: float = 0.05, draws: int = 199, seed: int = 0
    ) -> MergeVerdict:
        """Test of shared structure: whether the sites should be fused at all, and what the matching gains.

        The p-value is from what sites sent, not from the matching: close pairs of values of different sites are counted
        and compared with sites turned at random. Sites that share nothing get a yes with probability `level`.
        `modelweld.results.diagnostics.merge_value.worth_merging` has the rest.
        """
        return worth_merging(self._fit, set_name, level=level, draws=draws, seed=seed)

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
        return Fusion(with_site(self._fit, model, site=site, time=time, refit=refit, seed=seed))

    @on_one_thread
    def remove(self, site: str | int, *, from_scratch: bool = False, refit: bool = True, seed: int = 0) -> Fusion:
        """The fusion with one site less: no value of it is left, and with `from_scratch` no influence either.

        Its values leave all sums, then (`refit`) hyperparameters are learned and sweeps go on *from the labels that it
        helped to find*, which need not lead to where fusing the others alone does. The site that was added last leaves
        the labels of before it came, or others with a better objective: ``diagnosis.settings["restored"]`` is true or
        false. (A fusion that was saved or pickled in between does not know what was before.)

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
        return Fusion(without_site(self._fit, site, from_scratch=from_scratch, refit=refit, seed=seed))

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
        <SlimFusion of 4 sites: 3 atoms (3 shared)>
        """
        return slim(self._fit)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write everything to one safetensors file; ``modelweld.load`` reads it again, bit for bit."""
        return modelweld.files.fusion_file.save_fusion(self._fit, path, force=force)

    def table(self, set_name: str | None = None, *, confidence: bool = False, allow_small: bool = False) -> GroupTable:
        """One row per group: who has it, how many points, and the mean of what sites sent in the features' units.

        Rows are numbered as `labels` are. The fused value stands beside a mean from which it differs visibly. Print it,
        let a notebook show it, or take ``.to_pandas()``.

        Parameters
        ----------
        set_name : str, optional
            Which set; needed when there are several.
        confidence : bool
            Whether to say how sure groups are, which takes seconds (at its first use on a machine more).
        allow_small : bool
            Whether to show numbers of points below five, and what groups of so few are like.
        """
        return modelweld.report.groups.groups_of(self, set_name, confidence=confidence, allow_small=allow_small)

    @on_one_thread
    def report(
        self,
        path: str | os.PathLike[str],
        title: str = "Fusion report",
        *,
        force: bool = False,
        draws: bool = True,
        allow_small: bool = False,
    ) -> Path:
        """Write one self-contained HTML page: what was fused, how sure that is, and what to look at.

        A file that is there already is replaced with `force` alone. Without `draws` it is written at once: confidences
        then take all other matches to be right, and means have standard errors instead of intervals. With `allow_small`
        it shows numbers of points below five, and what groups of so few are like.
        """
        return modelweld.report.write_report(self, path, title, force=force, draws=draws, allow_small=allow_small)

    @property
    def plot(self) -> Plot:
        """Figures for papers (extra `plot`): ``fusion.plot.sharing()``, `atoms`, `objective`, `confidence`, ...

        ``fusion.plot()`` draws them all on one sheet.
        """
        from modelweld.report.plot import Plot

        return Plot(self)

    def __repr__(self) -> str:
        several = modelweld.report.text.several
        sets = ", ".join(
            f"{several(m.K, name)} ({m.shared:,} shared) from {len(m.stacked_labels)}"
            + (f" ({len(m.excluded)} excluded)" if len(m.excluded) else "")
            for name, m in self.matchings.items()
        )
        state = "" if self.diagnosis.converged else ", not converged"
        return f"<Fusion of {several(len(self.sites), 'site')}: {sets or 'classes by name'}{state}>"

    def _repr_html_(self) -> str:
        if len(self.matchings) == 1:
            return self.table().html(repr(self))
        rows = [[name, m.K, m.shared, len(m.stacked_labels), len(m.excluded)] for name, m in self.matchings.items()]
        return html_table(repr(self), ["set", "atoms", "shared", "of", "excluded"] if rows else [], rows)
