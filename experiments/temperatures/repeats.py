"""One repeat of the study: sites that train, fusions and rivals, and their scores, on one random split."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from rivals import Committee, Yesterday, passed_back
from scores import in_units, scores
from trainer import centres, trained

from data import Split, split
from modelweld import BetaBernoulli, fuse, read
from modelweld.kinds.gp_natural import SparseGP, factor_of, project

GAMMA0 = 50.0  # the paper's


class Size(NamedTuple):
    """Rows of every state to learn from and to test on, at home and across; inducing inputs; steps of learning."""

    train: int = 400
    own: int = 200
    across: int = 40
    points: int = 50
    steps: int = 40
    states: int | None = None


FULL = Size()
QUICK = Size(train=300, own=60, across=30, points=50, steps=25, states=8)
FIRST_ROWS = 5000  # of pooled data, on which the pooled process starts: steps on all rows take four times as long


def local_models(data: Split, points: int, steps: int, start: list[SparseGP] | None = None) -> list[SparseGP]:
    """Every state's own process."""
    more = [{}] * len(data.states) if start is None else [{"start": gp} for gp in start]
    return [trained(r.X, in_units(r.y), points, steps=steps, **m) for r, m in zip(data.train, more, strict=True)]


def pooled_model(data: Split, points: int, steps: int) -> SparseGP:
    """A process of all states' rows, started from one of a part of them."""
    X, y = np.concatenate([r.X for r in data.train]), in_units(np.concatenate([r.y for r in data.train]))
    part = np.random.default_rng(0).permutation(len(X))[:FIRST_ROWS]
    first = trained(X[part], y[part], points, steps=steps)
    return trained(X, y, points, steps=steps, start=first, inputs=first.inputs)


def repeat(seed: int, size: Size) -> dict[str, Any]:
    """All methods on one split."""
    data = split(seed, *size[:3], only=size.states)
    sites = local_models(data, size.points, size.steps)
    messages = [read(gp, site=state) for gp, state in zip(sites, data.states, strict=True)]
    fusion = fuse(messages, prior=BetaBernoulli(1.0, GAMMA0 * size.points / FULL.points))
    natural = fusion.model()
    scales, points = natural.kernel.lengthscales, np.concatenate([gp.inputs for gp in sites])
    others = centres(points / scales, len(natural.inputs)) * scales
    said = project([factor_of(gp) for gp in sites], natural.kernel, natural.mean, others)
    models = {
        "yesterday": Yesterday(),
        "local": sites,
        "passed back": passed_back(fusion, sites),
        "spahm": fusion.model(how="spahm"),
        "rbcm": Committee(sites),
        "natural, k-means": SparseGP(others, *said, natural.kernel, natural.mean, natural.noise),
        "natural": natural,
        "pooled": pooled_model(data, len(natural.inputs), size.steps),
    }
    found = {name: scores(model, data) for name, model in models.items()}
    return {"K": fusion.K, "M": len(natural.inputs), "scores": found}


def large_local(seed: int, size: Size, points: int) -> dict[str, Any]:
    """The sites' own processes with many more points, started from their settings with few."""
    data = split(seed, *size[:3], only=size.states)
    few = local_models(data, size.points, size.steps)
    return {"scores": {"local, many": scores(local_models(data, points, size.steps // 3, few), data)}}
