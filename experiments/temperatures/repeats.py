"""One repeat of the study: sites that train, fusions and rivals, and their scores, on one random split."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from rivals import Experts, Yesterday, inputs_passed_back, passed_back
from scores import errors, in_units, scores
from trainer import centres, trained

from data import Array, Split, split, stations
from modelweld import BetaBernoulli, fuse, read
from modelweld.kinds.gp_natural import Factor, SparseGP, complete, factor_of, project

GAMMA0 = 50.0  # the paper's
NEIGHBOURS = 3  # nearest states whose models are asked about a station, for the map


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


def on(inputs: Array, factors: list[Factor], like: SparseGP) -> SparseGP:
    """Natural fusion at these inputs, with a kernel, mean and noise found already."""
    found = project(factors, like.kernel, like.mean, inputs)
    return SparseGP(inputs, *found, like.kernel, like.mean, like.noise)


def repeat(seed: int, size: Size) -> dict[str, Any]:
    """All methods on one split."""
    data = split(seed, *size[:3], only=size.states)
    sites = local_models(data, size.points, size.steps)
    noises = [gp.noise for gp in sites]
    messages = [read(gp, site=state) for gp, state in zip(sites, data.states, strict=True)]
    gamma0 = GAMMA0 * size.points / FULL.points
    fusion = fuse(messages, prior=BetaBernoulli(1.0, gamma0))
    learned = fuse(messages, prior=BetaBernoulli(1.0, gamma0, learning=True))
    natural = fusion.model()
    pooled = pooled_model(data, len(natural.inputs), size.steps)

    factors = [factor_of(gp) for gp in sites]
    points = np.concatenate([gp.inputs for gp in sites])
    scales = natural.kernel.lengthscales
    said = [
        Factor(r.X, np.eye(len(r.X)) / np.sqrt(s), in_units(r.y) / np.sqrt(s))
        for r, s in zip(data.train, noises, strict=True)
    ]
    rows = [(r.X, in_units(r.y)) for r in data.train]
    models = {
        "yesterday": Yesterday(),
        "local": sites,
        "inputs passed back": inputs_passed_back(fusion.parameters.estimate("inputs"), sites, rows),
        "passed back": passed_back(fusion, sites),
        "spahm": fusion.model(how="spahm"),
        "bcm": Experts(sites, "bcm"),
        "poe": Experts(sites, "poe"),
        "rbcm": Experts(sites, "rbcm"),
        "natural": natural,
        "natural, learned": on(complete(learned._fit.array("inputs"), points, natural.kernel), factors, natural),
        "natural, k-means": on(centres(points / scales, len(natural.inputs)) * scales, factors, natural),
        "natural, medians": fusion.model(kernel="median"),
        "pooled": pooled,
        "data, fused kernel": on(natural.inputs, said, natural),
        "factors, pooled kernel": on(pooled.inputs, factors, pooled),
    }
    return {
        "K": fusion.K,
        "K learned": learned.K,
        "gamma0 learned": learned.diagnosis.hyperparameters["gamma0"],
        "M": len(natural.inputs),
        "scores": {name: scores(model, data) for name, model in models.items()}
        | {"natural, own noise": scores(natural, data, noises)},
        "kernels": {
            "local": np.median([gp.kernel.lengthscales for gp in sites], axis=0).round(3).tolist(),
            "natural": natural.kernel.lengthscales.round(3).tolist(),
            "pooled": pooled.kernel.lengthscales.round(3).tolist(),
        },
        "stations": squares(data, sites, natural),
        "points": " ".join(f"{v:.3f}" for v in natural.inputs[:, 3:5].ravel()),
    }


def squares(data: Split, sites: list[SparseGP], fused: SparseGP) -> str:
    """Per station: test rows, and mean squares of errors of the nearest other states' models and after fusion."""
    places = stations()
    home = np.array([np.mean([p[1:] for p in places if p.state == s], axis=0) for s in data.states])
    home[:, 1] *= np.cos(np.radians(40))
    lines = []
    for j, rows in enumerate(data.own):
        nearest = np.argsort(np.square(home - home[j]).sum(axis=1))[1 : 1 + NEIGHBOURS]
        before = np.mean([np.square(errors(sites[k], rows)) for k in nearest], axis=0)
        after = np.square(errors(fused, rows))
        for station in np.unique(rows.station):
            at = rows.station == station
            lines.append(f"{station} {at.sum()} {before[at].mean():.2f} {after[at].mean():.2f}")
    return ";".join(lines)


def large_local(seed: int, size: Size, points: int) -> dict[str, Any]:
    """The sites' own processes with many more points, started from their settings with few."""
    data = split(seed, *size[:3], only=size.states)
    few = local_models(data, size.points, size.steps)
    return {"scores": {"local, many": scores(local_models(data, points, size.steps // 3, few), data)}}


def large_pooled(seed: int, size: Size, points: int) -> dict[str, Any]:
    """The pooled process with more points."""
    data = split(seed, *size[:3], only=size.states)
    return {"scores": {"pooled, many": scores(pooled_model(data, points, 3 * size.steps // 4), data)}}
