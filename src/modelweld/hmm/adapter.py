"""modelweld's own StickyHDPHMM.

What leaves is what adds: expected moves, starts and *effective* frames (zeta times the frames: n frames that resemble
their neighbours are worth fewer), and the means and covariances of these frames as they are, without the prior. Fused,
they are the statistics of all sites' frames added through the matching. Writing is then the last step of a fit: prior
and added statistics give the posteriors, and what few frames cannot tell, the prior does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from modelweld.errors import InputError
from modelweld.hmm.statistics import Summary
from modelweld.hmm.sticky import StickyHDPHMM
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import full_covariances, hmm
from modelweld.kinds.mixture_components import FEWEST_POINTS, diagonals

SETTINGS = ("kappa", "eta", "gamma", "eta0", "mean_precision")
"""What a written model takes over, where all sites agree; else it has the class's defaults."""


def read(
    model: StickyHDPHMM,
    *,
    known: Literal["variance", "weight", "equally"] = "variance",
    effective: Literal["frames", "visits"] = "frames",
    features: Sequence[str] | None = None,
) -> LocalModel:
    """States' means and covariances, and how often the chain starts, moves and stays; nothing else need be said.

    Parameters
    ----------
    model : fitted StickyHDPHMM
        It remembers all counts.
    known : {"variance", "weight", "equally"}
        How it is stated how well each state is known, which decides how states can be matched:

        - ``"variance"``: squared standard errors beside the means. For the default, means with standard errors, a
          site's states being possibly fragments of one: ``fuse(sites)``.
        - ``"equally"``: nothing. The paper's matching, by means alone:
          ``fuse(sites, search=Search(splits=False))``, or ``fuse(sites, preset="paper")`` to the letter.
        - ``"weight"``: numbers beside means and covariances, for matching by both:
          ``fuse(sites, {("means", "covariances"): Moments()})``.
    effective : {"frames", "visits"}
        What a state's mean is worth: zeta times its frames, or its visits, the bouts after which the chain came back
        to it. Frames of a movement are far from independent, so that with zeta 1 the former is too sure; with
        ``zeta="auto"`` it is what the correlations within bouts leave. Visits are the strictest: what a bout is like
        as a whole may differ, too.
    features : sequence of str, optional
        Names of the features.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.hmm import StickyHDPHMM
    >>> rng = np.random.default_rng(0)
    >>> sites = []
    >>> for order in ((0, 8, 0), (8, -8, 8)):
    ...     X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in order])
    ...     sites.append(StickyHDPHMM(n_states=10, random_state=0).fit(X))
    >>> fused = modelweld.fuse(sites).model()
    >>> sorted(fused.means_[:, 0].round().astype(int).tolist())
    [-8, 0, 8]
    """
    if not hasattr(model, "statistics_"):
        raise InputError("this StickyHDPHMM is not fitted: fit it first.")
    if known not in ("variance", "weight", "equally"):
        raise InputError(f"known is 'variance', 'weight' or 'equally'; found {known!r}.")
    if effective not in ("frames", "visits"):
        raise InputError(f"effective is 'frames' or 'visits'; found {effective!r}.")
    sums = model.statistics_
    counts = model.zeta_ * sums.counts
    learned = model.prior_scale == "learned"
    scale = {"share": _share(model)} if learned else {"prior_scale": float(model.prior_scale)}
    local = hmm(
        sums.moves,
        sums.starts,
        counts,
        {"means": sums.means, "covariances": sums.covariances},
        counted=True,
        features=features,
        facts={**{name: getattr(model, name) for name in SETTINGS}, "zeta": model.zeta_, **scale},
    )
    worth = np.maximum(counts if effective == "frames" else sums.visits, FEWEST_POINTS)
    if known == "variance":
        return local.with_(variance={"means": diagonals(model.covars_) / worth[:, None]})
    weight = {"means": worth, "covariances": worth} if known == "weight" else {}
    return local.with_(variance={}, weight=weight)


def write(local: LocalModel, like: str) -> StickyHDPHMM:
    """A StickyHDPHMM: one step from added statistics.

    The scale of the prior is that of all sites where they agree; else it is learned again, from the statistics, as it
    is behind scalers, whose units a given scale does not know. So with zeta; where it differs between sites it is their
    average by frames, effective frames over starts and moves.
    """
    if "means" not in local.arrays or not local.facts.get("counted"):
        raise InputError(
            "a StickyHDPHMM is made of states with Gaussian emissions and numbers of frames: these sites sent other "
            "emissions, or shares only. Say how long sequences are: read(model, lengths=...)."
        )
    means, moves, starts, counts = (np.asarray(local.arrays[name]) for name in ("means", "moves", "starts", "counts"))
    facts = local.facts
    # every frame is a start or an arrival; not quite where small numbers were dropped at export
    frames = float(moves.sum() + starts.sum())
    zeta = facts.get("zeta", min(float(counts.sum()) / max(frames, 1.0), 1.0))
    settings = {name: facts[name] for name in SETTINGS if name in facts}
    if "prior_scale" in facts and "undone" not in facts:
        settings["prior_scale"] = facts["prior_scale"]
    return StickyHDPHMM.from_statistics(
        Summary(counts / _check_zeta(zeta), means, full_covariances(local), moves, starts),
        share=facts.get("share"),
        zeta=zeta,
        **settings,
    )


def _check_zeta(zeta: object) -> float:
    """A site's word for what a frame counts, or an `InputError`."""
    if not isinstance(zeta, (int, float)) or not 0 < zeta <= 1:
        raise InputError(f"fact 'zeta' of a StickyHDPHMM is a number above 0, at most 1; found {zeta!r}.")
    return float(zeta)


def _share(model: StickyHDPHMM) -> float:
    """The learned scale of the prior, as a share of features' variances."""
    return float(model.prior_scale_[0] / model.statistics_.unit[0] ** 2)
