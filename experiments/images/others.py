"""What fused networks of images are compared with: averages, weight matching, transport. All work on named arrays."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from modelweld.kinds.layer_graph import name_sets
from modelweld.kinds.network_channels import deep_network, number_of, plain_arrays, shares

MOST_ROUNDS = 20
"""Of weight matching; it has come to rest long before."""

FRANK_WOLFE = 25
"""Steps of n-way matching."""


def of_layers(models):
    """Arrays of layers of every site by name, and their axes."""
    axes = {name: along for name, along in models[0].axes.items() if number_of(name) >= 0}
    return [{name: np.asarray(m.arrays[name]) for name in axes} for m in models], axes


def turned(arrays, axes, turns):
    """Arrays whose channels are put into another order by matrices (new, old), one per set."""
    result = {}
    for name, x in arrays.items():
        for at, axis in enumerate(axes[name]):
            if axis in turns:
                x = np.moveaxis(np.tensordot(turns[axis], x, (1, at)), 0, at)
        result[name] = x
    return result


def likeness(one, other, axes, set_name):
    """Inner products of the channels of two networks in a set, by all weights that touch them."""
    total = 0.0
    for name, along in axes.items():
        if set_name in along and not name.startswith(("mean", "var")):
            a, b = (np.moveaxis(x[name], along.index(set_name), 0) for x in (one, other))
            total = total + a.reshape(len(a), -1) @ b.reshape(len(b), -1).T
    return total


def permutation(fit):
    """The matrix that puts columns where they fit best."""
    rows, columns = linear_sum_assignment(fit, maximize=True)
    turn = np.zeros_like(fit)
    turn[rows, columns] = 1.0
    return turn


def mean_of(several):
    """Arrays averaged over networks."""
    return {name: np.mean([one[name] for one in several], axis=0) for name in several[0]}


def averaged(models, arrays):
    """A network of plain averages; outputs by class counts, moments as moments."""
    graph, pi = models[0].facts["graph"], shares(models)
    sets, fused = name_sets(graph), mean_of(arrays)
    for name in fused:
        if name.startswith("var"):
            fused[name] += np.var([one[f"mean{number_of(name)}"] for one in arrays], axis=0)
        elif sets[number_of(name)] == "class":
            own = [one[name] for one in arrays]
            fused[name] = sum(p.reshape(-1, *[1] * (x.ndim - 1)) * x for p, x in zip(pi, own, strict=True))
    return models[0].with_(arrays={**models[0].arrays, **fused})


def git_rebasin(models):
    """Weight matching of several networks (MergeMany): each in turn to the mean of the others."""
    arrays, axes = of_layers(models)
    sets = list(models[0].sizes)
    for _ in range(MOST_ROUNDS):
        changed = False
        for j in range(len(arrays)):
            wanted = mean_of([one for i, one in enumerate(arrays) if i != j])
            for _ in range(MOST_ROUNDS):
                moved = False
                for set_name in sets:
                    fit = likeness(wanted, arrays[j], axes, set_name)
                    turn = permutation(fit)
                    if (fit * turn).sum() > np.trace(fit) + 1e-9 * abs(np.trace(fit)):
                        arrays[j] = turned(arrays[j], axes, {set_name: turn})
                        moved = changed = True
                if not moved:
                    break
        if not changed:
            break
    return averaged(models, arrays)


def n_way(models):
    """Cycle-consistent matching into one universe by Frank and Wolfe's steps, all sets at once, as in C2M3."""
    arrays, axes = of_layers(models)
    sizes = models[0].sizes
    turns = [{s: np.full((n, n), 1.0 / n) if j else np.eye(n) for s, n in sizes.items()} for j in range(len(arrays))]
    for t in range(FRANK_WOLFE):
        now = [turned(one, axes, turn) for one, turn in zip(arrays, turns, strict=True)]
        for j, one in enumerate(arrays):
            wanted = mean_of([other for i, other in enumerate(now) if i != j])
            for s in sizes:
                partly = turned(one, axes, {other: turn for other, turn in turns[j].items() if other != s})
                turns[j][s] += 2 / (t + 2) * (permutation(likeness(wanted, partly, axes, s)) - turns[j][s])
    hard = [{s: permutation(turn) for s, turn in one.items()} for one in turns]
    return averaged(models, [turned(one, axes, turn) for one, turn in zip(arrays, hard, strict=True)])


def transported(models):
    """Optimal transport of channels, layer by layer, to the first site's (OT fusion, Singh and Jaggi), by POT."""
    import ot

    arrays, axes = of_layers(models)
    wanted, result = arrays[0], [arrays[0]]
    for one in arrays[1:]:
        known = []
        for set_name, n in models[0].sizes.items():
            known.append(set_name)
            name = next(k for k, along in axes.items() if set_name in along and set(along) <= {None, *known})
            a, b = (np.moveaxis(x[name], axes[name].index(set_name), 0).reshape(n, -1) for x in (wanted, one))
            plan = ot.emd(np.full(n, 1 / n), np.full(n, 1 / n), ot.dist(a, b)) * n
            one = turned(one, axes, {set_name: plan})
        result.append(one)
    return averaged(models, result)


def naive(models):
    """Averages by place."""
    return averaged(models, of_layers(models)[0])


def at_random(model, seed):
    """A network of the same widths with PyTorch's random weights; running moments stay."""
    import torch

    from modelweld.kinds.network_modules import arrays_in, build

    torch.manual_seed(seed)
    net = build(model)
    moments = {name: x for name, x in plain_arrays(model).items() if name.startswith(("mean", "var"))}
    for module in net.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    labels = list(model.facts["labels"].values())
    arrays = {**arrays_in(net), **moments}
    return deep_network(model.facts["graph"], arrays, classes=labels, counts=model.arrays["counts"], facts=model.facts)
