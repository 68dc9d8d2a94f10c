"""Answers of the whole library to fixed questions: a change that is not meant to alter any must alter none.

`test_answers.py` compares them with `golden/answers.json`: labels and numbers of atoms exactly, real numbers to a part
in a million, because another processor adds in another order. On one machine ask for more than that:

    python tests/answers.py > before        # a hash of all bits of every answer
    python tests/answers.py > after         # after the change
    python tests/answers.py --write         # where a change was meant: new golden answers
"""

import hashlib
import json
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "golden" / "answers.json"

ANSWERS = {}
"""Name of a question -> the function that answers it with named numbers and arrays."""


def answer(function):
    """Enter a question into the table."""
    ANSWERS[function.__name__] = function
    return function


@cache
def places():
    """Rows of seven sites, each with four of six heaps."""
    rng = np.random.default_rng(0)
    heaps = rng.normal(0, 6, (6, 3))
    return [np.concatenate([rng.normal(heaps[k], 1, (60, 3)) for k in rng.permutation(6)[:4]]) for _ in range(7)]


@cache
def mixtures():
    from sklearn.mixture import GaussianMixture

    return [GaussianMixture(4, random_state=0).fit(X) for X in places()]


@cache
def counted():
    import modelweld

    return [modelweld.read(g, n=240, site=str(i)) for i, g in enumerate(mixtures())]


@cache
def fused():
    import modelweld

    return modelweld.fuse(counted())


@cache
def noisy(sites=80, seed=1):
    """Sites of 25 out of 40 atoms in 50 dimensions: the compiled engine's from 80 sites on."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 5, (40, 50))
    return [atoms[rng.permutation(40)[:25]] + rng.normal(0, 0.8, (25, 50)) for _ in range(sites)]


@cache
def large():
    import modelweld

    return modelweld.fuse(noisy())


def told(fusion):
    """What a fusion says of every set."""
    return {
        f"{name} {what}": value
        for name, m in fusion.matchings.items()
        for what, value in {
            "K": m.K,
            "labels": m.stacked_labels,
            "objective": m.objective,
            "history": np.array(m.history),
            **{f"atoms {key}": values for key, values in m.values.items()},
        }.items()
    }


@answer
def bare_mixtures():
    import modelweld

    fusion = modelweld.fuse(mixtures())
    model = fusion.model()
    return told(fusion) | {"means": model.means_, "covariances": model.covariances_, "weights": model.weights_}


@answer
def counted_mixtures():
    return told(fused())


@answer
def ways_to_one_mixture():
    moments, density = fused().model(how="moments"), fused().model(how="density")
    two = fused().density.reduce(2).model(how="moments")
    return {"moments": moments.covariances_, "density": density.means_, "two": two.means_}


@answer
def confidence():
    return {
        "confidence": np.concatenate(fused().confidence(how="conditional")),
        "conditional": fused().posterior.conditional(2),
    }


@answer
def site_added():
    import modelweld

    return told(fused().add(modelweld.read(mixtures()[0], n=99), site="x"))


@answer
def site_removed():
    return told(fused().remove("2"))


@answer
def samples():
    posterior = fused().posterior.sample(20, chains=2, fixed=True)
    return {"labels": posterior.labels, "K": posterior.K, "objective": posterior.objective}


@answer
def diagnoses():
    found = fused().diagnosis.sites()
    return {
        "score": np.array([d.score for d in found]),
        "influence": np.array([d.influence for d in found]),
        "gain": fused().worth_merging().gain,
    }


@answer
def report():
    """The page's numbers without versions: 13,000 characters, as bits and as the real numbers among them."""
    from modelweld.report.numbers import numbers_of

    found = numbers_of(fused())
    return {
        "numbers": np.array([x for x in _leaves(found) if isinstance(x, float)]),
        "length": len(list(_leaves(found))),
    }


def _leaves(tree):
    """All numbers and words of nested dicts and lists."""
    if isinstance(tree, dict | list | tuple):
        for branch in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(branch)
    else:
        yield tree


@answer
def kmeans():
    from sklearn.cluster import KMeans

    import modelweld

    return told(modelweld.fuse([KMeans(4, n_init=1, random_state=0).fit(X) for X in places()]))


@answer
def paper():
    import modelweld

    return told(modelweld.fuse([x[:, :4] / 2 for x in noisy(12, seed=2)], preset="paper"))


@answer
def authors():
    import modelweld

    return told(modelweld.fuse([x[:, :4] / 2 for x in noisy(12, seed=2)], preset="authors"))


@answer
def textbook():
    sys.path += [str(Path(__file__).parents[1] / name) for name in ("experiments", "benchmarks")]
    from textbook import textbook

    return told(textbook([X[:20] for X in places()]))


@answer
def thorough():
    import modelweld

    return told(modelweld.fuse([X[::12] for X in places()], search="thorough"))


@answer
def full_covariance():
    import modelweld

    return told(modelweld.fuse([X[::12] for X in places()], modelweld.Gaussian(shape="full")))


@answer
def two_sites():
    import modelweld

    return told(modelweld.fuse([X[::30] for X in places()[:2]]))


@answer
def outliers_and_a_shifted_site():
    import modelweld

    sites = [*noisy(9, seed=3), noisy(10, seed=3)[9] + 3.0, np.full((2, 50), 1e4)]
    fusion = modelweld.fuse(sites)
    return told(fusion) | {"excluded": fusion.matching.excluded, "reasons": len(fusion.matching.reasons)}


@answer
def weights_and_what_was_not_seen():
    import modelweld

    rng = np.random.default_rng(4)
    sites = [
        modelweld.LocalModel({"v": x}, {"v": ("atom", None)}, weight={"v": rng.integers(0, 3, x.shape) * 1.0})
        for x in noisy(6, seed=4)
    ]
    return told(modelweld.fuse(sites))


@answer
def compiled():
    return told(large()) | {"compiled": large().matching.engine == "compiled"}


@answer
def compiled_plain():
    import modelweld

    return told(modelweld.fuse(noisy(), search="plain"))


@answer
def compiled_revised():
    return told(large().remove(3).add(noisy(81)[80]))


@answer
def slim():
    slim = large().slim()
    more = slim.add(noisy(81)[80])
    return {"K": slim.K, "sums": slim.sums["values"], "then": more.K, "objective": more.objective}


@answer
def shards():
    from modelweld.shards.default_call import fuse_shards, group_sites

    found = fuse_shards(group_sites(noisy()))
    return {"K": found.K, "counts": found.counts, "trace": np.array([v for _, v in found.trace]), "atoms": found.atoms}


@answer
def families():
    import modelweld

    rng = np.random.default_rng(5)
    directions = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.normal(size=(5, 4, 8))]
    shares = [rng.dirichlet(np.ones(6), 4) for _ in range(5)]
    wishart = [np.stack([np.cov(rng.normal(size=(3, 30))) for _ in range(4)]).reshape(4, 9) for _ in range(5)]
    fusions = {
        "counts": modelweld.fuse([rng.poisson(3, (4, 12)) + 1.0 for _ in range(5)], modelweld.Counts()),
        "rates": modelweld.fuse(list(rng.gamma(3, 1, (5, 4, 5))), modelweld.Rates()),
        "directions": modelweld.fuse(directions, modelweld.Directions(own=False)),
        "proportions": modelweld.fuse(shares, modelweld.Proportions()),
        "normal gamma": modelweld.fuse([X[::12] for X in places()], modelweld.NormalGamma()),
        "scatter": modelweld.fuse(wishart, modelweld.Scatter(freedom=29.0)),
    }
    return {f"{name}: {what}": value for name, f in fusions.items() for what, value in told(f).items()}


@answer
def covariances():
    import modelweld

    sites = [
        modelweld.LocalModel(
            {"m": g.means_, "C": g.covariances_},
            {"m": ("component", None), "C": ("component", None, None)},
            weight={"m": 60.0, "C": 60.0},
        )
        for g in mixtures()
    ]
    fusions = {
        "moments": modelweld.fuse(sites, {("m", "C"): modelweld.Moments()}),
        "scatter": modelweld.fuse(sites, {"m": modelweld.Gaussian(), "C": modelweld.Scatter()}),
    }
    return {f"{name}: {what}": value for name, f in fusions.items() for what, value in told(f).items()}


@answer
def networks():
    import modelweld
    from modelweld.kinds.network import network

    rng = np.random.default_rng(6)
    W0, W1 = rng.normal(size=(3, 8)), rng.normal(size=(8, 2))
    sites = []
    for _ in range(5):
        held = rng.permutation(8)[:6]
        W = [W0[:, held] + rng.normal(0, 0.05, (3, 6)), W1[held] + rng.normal(0, 0.05, (6, 2))]
        sites.append(network(W, [rng.normal(0, 0.05, 6), np.zeros(2)], activation="relu", classes=["a", "b"]))
    fusion = modelweld.fuse(sites)
    return told(fusion) | {f"fused {name}": x for name, x in fusion.parameters("mean").arrays.items()}


@answer
def hidden_markov_models():
    import modelweld
    from modelweld.kinds.hmm import hmm

    rng = np.random.default_rng(7)
    means, sites = rng.normal(0, 8, (5, 2)), []
    for _ in range(6):
        held = rng.permutation(5)[:4]
        emissions = {"means": means[held] + rng.normal(0, 0.2, (4, 2)), "covariances": np.stack([np.eye(2)] * 4)}
        sites.append(hmm(rng.gamma(2, 5, (4, 4)), np.ones(4), rng.gamma(9, 5, 4), emissions, counted=True))
    fusion = modelweld.fuse(sites)
    return told(fusion) | {f"fused {name}": x for name, x in fusion.parameters().arrays.items()}


@answer
def topics():
    import modelweld
    from modelweld.kinds.topics import topics

    rng = np.random.default_rng(8)
    truth, words = rng.dirichlet(np.full(30, 0.2), 5), [f"w{v}" for v in range(30)]
    sites = []
    for _ in range(6):
        known = np.sort(rng.permutation(30)[:25])
        held = truth[rng.permutation(5)[:3]][:, known]
        sites.append(topics(rng.poisson(400 * held) * 1.0, [words[v] for v in known], site=str(len(sites))))
    fusion = modelweld.fuse(sites)
    return told(fusion) | {f"fused {name}": x for name, x in fusion.parameters().arrays.items()}


@answer
def class_tables():
    from sklearn.naive_bayes import GaussianNB

    import modelweld

    rng = np.random.default_rng(9)
    sites = []
    for _ in range(4):
        y = rng.integers(0, 3, 90)
        sites.append(GaussianNB().fit(y[:, None] + rng.normal(size=(90, 2)), y))
    model = modelweld.fuse(sites).model()
    return {"means": model.theta_, "variances": model.var_}


@answer
def gaussian_processes():
    import modelweld
    from modelweld.kinds.sparse_gp import sparse_gp

    rng = np.random.default_rng(10)
    sites = []
    for low in (-3.0, -1.0, 0.0):
        Z = np.linspace(low, low + 3, 6)[:, None]
        u = np.sin(2 * Z[:, 0]) + rng.normal(0, 0.1, 6)
        sites.append(sparse_gp(Z, u, 0.01 * np.eye(6), lengthscales=1.0, outputscale=2.0, noise=0.05))
    fusion = modelweld.fuse(sites)
    return told(fusion) | {f"fused {name}": x for name, x in fusion.parameters().arrays.items()}


@answer
def sticky_hdp_hmm():
    from modelweld.hmm import StickyHDPHMM

    rng = np.random.default_rng(11)
    X = np.concatenate([rng.normal(m, 1.0, (n, 2)) for m, n in [(0, 80), (8, 70), (0, 50), (-8, 40)]])
    model = StickyHDPHMM(n_states=10, random_state=0).fit(X)
    return {"bound": model.bound_, "means": model.means_, "path": model.predict(X)}


@cache
def odd(seed=12):
    """Eight clean sites of six atoms: what stands round a site that is odd."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 6, (6, 4))
    return [atoms + rng.normal(0, 0.3, atoms.shape) for _ in range(8)]


def screened(models, **asked):
    """What a fusion says, and what it says of sites: who was excluded, who counts once, how many reasons."""
    import modelweld

    fusion = modelweld.fuse(models, **asked)
    found = told(fusion)
    for name, m in fusion.matchings.items():
        found[f"{name} excluded"] = m.excluded
        found[f"{name} duplicates"] = np.array(sorted((m.duplicates or {}).items()), dtype=np.int64)
        found[f"{name} reasons"] = len(m.reasons)
    return found


@answer
def times():
    rng = np.random.default_rng(13)
    start, speed = rng.normal(0, 6, (5, 2)), rng.normal(0, 0.2, (5, 2))
    sites = [start[:4] + t * speed[:4] + rng.normal(0, 0.1, (4, 2)) for t in range(6)]
    later = [start[1:] + t * speed[1:] + rng.normal(0, 0.1, (4, 2)) for t in range(3, 6)]
    return screened([*sites, *later, sites[0]], times=[0, 1, 2, 3, 4, 5, 3, 4, 5, 0])


@answer
def duplicate_site():
    return screened([*odd(), odd()[2][::-1]])


@answer
def near_duplicate_site():
    rng = np.random.default_rng(14)
    splits = [odd()[j] + rng.normal(0, 0.003, (6, 4)) for j in (1, 1, 4)]
    return screened([*odd(), *splits])


@answer
def oversized_site():
    return screened([*odd(), np.random.default_rng(15).normal(0, 6, (600, 4))])


@answer
def shifted_outlying_and_duplicate_sites():
    outlier = odd()[0].copy()
    outlier[3] = 1e4
    return screened([*odd()[1:], outlier, odd()[5] + 5.0 + odd(17)[0] * 0.01, odd()[6]])


@answer
def other_units():
    sites = [x + 40.0 for x in odd()]
    return screened([*sites, sites[3] * np.array([1.0, 1000.0, 1.0, 1.0]) + odd(18)[0] * 0.01])


@answer
def mixed_up_columns():
    spread = np.array([1.0, 3.0, 9.0, 27.0])
    sites = [(x + 20.0) * spread for x in odd()]
    return screened([*sites, ((odd()[3] + odd(18)[0] * 0.02 + 20.0) * spread)[:, [1, 0, 2, 3]]])


@answer
def oversplit_site():
    import modelweld

    rng = np.random.default_rng(19)

    def model(values):
        return modelweld.LocalModel({"v": values}, {"v": ("atom", None)}, variance={"v": np.full(values.shape, 0.04)})

    fragments = np.repeat(odd()[0], 3, axis=0)
    return screened([*map(model, odd()), model(fragments + rng.normal(0, 0.3, fragments.shape))])


def bits(numbers):
    """A hash of all bits."""
    parts = [name.encode() + np.ascontiguousarray(numbers[name]).tobytes() for name in sorted(numbers)]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def plain(numbers):
    """As JSON has it: whole numbers as they are, of many real ones their number, sum and sum of squares."""
    result = {}
    for name, value in numbers.items():
        x = np.asarray(value)
        if x.dtype.kind in "biu":
            whole = x.astype("<i8")
            result[name] = whole.tolist() if x.size <= 500 else [x.size, hashlib.sha256(whole.tobytes()).hexdigest()]
        else:
            result[name] = x.tolist() if x.size <= 40 else [x.size, float(x.sum()), float(np.square(x).sum())]
    return result


def main():
    warnings.simplefilter("ignore")
    found = {name: function() for name, function in ANSWERS.items()}
    for name, numbers in found.items():
        print(name, bits(numbers))
    if "--write" in sys.argv:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(plain(numbers))}" for name, numbers in found.items())
        GOLDEN.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
