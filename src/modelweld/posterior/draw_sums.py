"""What one draw of matching and hyperparameters says of Gaussian atoms and of sites' own values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from modelweld.errors import InputError
from modelweld.families.gaussian import Gaussian
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack
from modelweld.matching.board import Board
from modelweld.posterior.draws import Posterior


@dataclass(frozen=True, eq=False)
class DrawSums:
    """One draw: its atoms' precisions and sums, from all values.

    Attributes
    ----------
    labels : int array (N,)
        Atom of each value, numbered without gaps in the order of `names`.
    names : int array (A,)
        What the draw calls them.
    typical_noise : array (D,) or (1,)
        Variance of a true local value of weight one about its atom.
    noise, error : arrays (N, D)
        Variance of each true local value about its atom, and of what was sent about that.
    precision, weighted : arrays (A, D)
        Sums over an atom's values of 1 / (noise + error) and of that times the value.
    """

    stack: Stack
    labels: Index
    names: Index
    mean: Array
    spread: Array
    typical_noise: Array
    noise: Array
    error: Array
    own: Array
    precision: Array
    weighted: Array

    def atoms(self) -> tuple[Array, Array]:
        """Posterior mean and variance (A, D) of the atoms."""
        variance = 1.0 / (1.0 / self.spread + self.precision)
        return variance * (self.mean / self.spread + self.weighted), variance

    def true_values(self, rows: slice) -> tuple[Array, Array]:
        """Mean and variance of the true local values of these rows: their atom by all *others*, and what was sent."""
        y, own, at = self.stack.values[rows], self.own[rows], self.labels[rows]
        q = 1.0 / self.spread + self.precision[at] - own
        middle = (self.mean / self.spread + self.weighted[at] - own * y) / q
        about = 1.0 / q + self.noise[rows]
        trusted = np.where(own > 0, about / (about + self.error[rows]), 0.0)  # in what was sent, not in the atom
        return middle + trusted * (y - middle), (1.0 - trusted) * about


def each_draw(board: Board, posterior: Posterior) -> Iterator[DrawSums]:
    """The draws of a posterior, chain after chain; board and posterior have their values in the same order."""
    stack, family = board.stacks[0].blind(), board.families[0]
    if not isinstance(family, Gaussian) or posterior.hyperparameters is None:
        raise InputError(
            "intervals of values take one array of Gaussian values; fusion.drawn() has what else there is."
        )
    drawn = posterior.hyperparameters
    seen = stack.seen.astype(np.float64)
    inverse = np.ones_like(seen) if stack.weight is None else 1.0 / np.where(seen > 0, stack.weight, 1.0)
    variance = np.zeros_like(seen) if stack.variance is None else stack.variance
    for c, t in np.ndindex(posterior.K.shape):
        names, labels = np.unique(posterior.labels[c, t], return_inverse=True)
        labels = labels.ravel()
        typical = drawn["noise"][c, t]
        noise = typical * inverse
        error = variance * (drawn["trust"][c, t] if "trust" in drawn else 1.0)
        own = seen / (noise + error)
        sums = np.zeros((2, len(names), stack.values.shape[1]))
        np.add.at(sums[0], labels, own)
        np.add.at(sums[1], labels, own * stack.values)
        mean, spread = drawn["mean"][c, t], drawn["spread"][c, t]
        yield DrawSums(stack, labels, names, mean, spread, typical, noise, error, own, *sums)
