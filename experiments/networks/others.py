"""What fused networks are compared with: averages and weight matching."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from modelweld.kinds.network import layers

MOST_ROUNDS = 20
"""Of weight matching; it has come to rest long before."""


def averaged(networks, shares):
    """Layers averaged unit by unit; the output layer by `shares` (J, classes)."""
    W, b = (list(zip(*parts, strict=True)) for parts in zip(*networks, strict=True))
    weights = [*(np.mean(w, axis=0) for w in W[:-1]), sum(p * w for p, w in zip(shares, W[-1], strict=True))]
    return weights, [*(np.mean(v, axis=0) for v in b[:-1]), sum(p * v for p, v in zip(shares, b[-1], strict=True))]


def matched_weights(networks):
    """Git Re-Basin's weight matching of several networks (its MergeMany): each in turn to the mean of the others."""
    networks = [([*W], [*b]) for W, b in networks]
    for _ in range(MOST_ROUNDS):
        changed = False
        for j in range(len(networks)):
            others = [network for i, network in enumerate(networks) if i != j]
            W, b = ([np.mean(part, axis=0) for part in zip(*parts, strict=True)] for parts in zip(*others, strict=True))
            changed |= _turned(*networks[j], W, b)
        if not changed:
            break
    return networks


def _turned(W, b, like_W, like_b):
    """Put the units of every hidden layer into the order that fits best, in turn, until none moves."""
    ever = False
    while True:
        moved = False
        for i in range(len(W) - 1):
            fit = like_W[i].T @ W[i] + np.outer(like_b[i], b[i]) + like_W[i + 1] @ W[i + 1].T
            order = linear_sum_assignment(fit, maximize=True)[1]
            here = np.trace(fit)
            if fit[np.arange(len(order)), order].sum() > here + 1e-9 * abs(here):
                W[i], b[i], W[i + 1] = W[i][:, order], b[i][order], W[i + 1][order]
                moved = ever = True
        if not moved:
            return ever


def posterior_means(fusion, shares):
    """PFNM's estimator: the atoms' own values, outgoing weights among them; output biases by `shares` (J, classes)."""
    depth = len(fusion.matchings) + 1
    W = [fusion.parameters.estimate(f"W{i}") for i in range(depth)]
    for i in range(1, depth - 1):  # a unit is not fed by one that no site has beside it
        before, after = (fusion.matchings[f"h{k}"].presence.astype(float) for k in (i - 1, i))
        W[i] = np.where(before.T @ after > 0, W[i], 0.0)
    out = sum(p * layers(m)[1][-1] for p, m in zip(shares, fusion._fit.models, strict=True))
    return W, [*(fusion.parameters.estimate(f"b{i}") for i in range(depth - 1)), out]


def units_of(network):
    """Hidden units."""
    return sum(w.shape[1] for w in layers(network)[0][:-1])
