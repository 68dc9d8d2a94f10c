"""Directions whose atoms have concentrations of their own: log-normal, on a grid, summed over exactly.

Sites agree more closely on some atoms than on others. The concentration of an atom is concentration * exp(diversity z),
z one of the NODES with probability in proportion to exp(-z^2 / 2). Given its concentration an atom is as in
`von_mises_fisher`, so that its log evidence is a log-sum-exp of evidences of the same statistics; at diversity zero it
is that of one concentration for all.

What is believed before anything is matched (`log_prior`): that the noise, as a share reference / (reference +
concentration) of the scatter, is as likely to be any, and that atoms are alike,

    log p(concentration) = -log(1 + concentration / reference),      log p(diversity) = -ALIKE diversity.

Without the first, a matching of the few values that happen to lie closest is the best one where sites are few and atoms
overlap: its concentration is many times too high. The second is what makes a diversity of exactly zero the answer where
atoms do not differ. Both are measured per logarithm of the concentration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from modelweld.families.math.bessel import log_uniform, tilt, tilt_and_slope
from modelweld.families.math.blocks import blocks
from modelweld.families.math.drawn_directions import draw_directions
from modelweld.families.math.maximise import ByAtom, climb
from modelweld.families.math.von_mises_fisher import CONCENTRATIONS, MOST_ROUNDS, direction_of, directions_of
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

NODES = np.linspace(-2.5, 2.5, 11)
"""Of the grid, in deviations of the logarithm. With twice or three times as many, the atoms of signatures are the same
(adjusted Rand index .94 to .96 either way, seeds 0 to 5)."""

SHARES = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
"""Probabilities of the nodes."""

LARGEST_TABLE = 1_000_000
"""Numbers of the largest table of values, atoms and nodes that is made at once."""

FEWEST_VALUES = 4
"""Values that some atom must have for a diversity to be learned: where there are two or three sites, a loose atom is a
few values that nobody shares, and a prior that expects few atoms makes such of all of them."""

ENOUGH = 1e-4
"""Nats below which another round of learning is not worth its time; after the next sweep it goes on."""

ALIKE = 4.0
"""Rate of the prior of diversity. At one, half of the sets of three sites in twenty dimensions whose atoms are alike
have diversities of two and more, by two to six nats; signatures, whose atoms differ, gain hundreds."""

FIRST_DIVERSITY, MOST_DIVERSITY = 0.5, 3.0
"""Where a climb begins (at zero there is no slope), and where it ends: ends of the grid are then a factor of three
million apart. Matchings begin with atoms that are alike: where they begin with atoms that differ, thousands of values
that nobody shares find one another by chance, as loose copies, and confirm each other in it."""

OwnTilts = Callable[[Array], tuple[Array, Array]]
"""Concentrations (G,) -> of every atom (G, K), the sum over its values of the tilt at concentration times weight, and
its slope."""


class Mixed(NamedTuple):
    """Hyperparameters: mean direction and concentration of atoms (`base`), law of values' concentrations.

    Rows have a column of c for each node, or one where the diversity stays zero. Where values are `axial`, which have
    no sign, there is no mean, the base is zero, and a value has the sign that suits the atom.
    """

    mean: Array
    kappa: float
    diversity: float
    base: float
    reference: float = 0.0
    columns: int = len(NODES)
    axial: bool = False

    @property
    def nodes(self) -> Array:
        """Those of the grid; one where all would be the same."""
        return NODES if self.diversity else np.zeros(1)

    @property
    def log_shares(self) -> Array:
        """Log probabilities of the nodes."""
        return np.asarray(np.log(SHARES)) if self.diversity else np.zeros(1)

    @property
    def kappas(self) -> Array:
        """Concentrations at the nodes (G,)."""
        return np.asarray(self.kappa * np.exp(self.diversity * self.nodes))

    def log_prior(self) -> float:
        """Log density of concentration and diversity; zero where nothing is believed."""
        return -float(np.log1p(self.kappa / self.reference)) - ALIKE * self.diversity if self.reference else 0.0

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows [n, c of each node, S]."""
        n, c, S = self.parts(rows)
        return self.evidence_at(S.shape[-1], n, c, self.along(S), np.einsum("...d,...d->...", S, S))

    def parts(self, rows: Array) -> tuple[Array, Array, Array]:
        """Numbers (...), columns c (..., G) and sums (..., D)."""
        return rows[..., 0], rows[..., 1 : 1 + self.columns], rows[..., 1 + self.columns :]

    def along(self, S: Array) -> Array:
        """How far sums lie along the mean (...); zero where atoms are spread evenly."""
        return np.asarray(S @ self.mean) if self.base else np.zeros(S.shape[:-1])

    def predictive(self, own: Array, sums: Array) -> Array:
        """Log densities of values at atoms (L, K)."""
        theirs, result = self.log_evidence(sums), np.empty((len(own), len(sums)))
        for part in blocks(len(own), len(sums) * len(self.nodes), LARGEST_TABLE):
            result[part] = self._together(own[part], sums) - theirs
        return result

    def _together(self, own: Array, sums: Array) -> Array:
        """Log evidences (L, K) of values together with atoms."""
        (n, c, V), (N, C, S) = self.parts(own), self.parts(sums)
        across = V @ S.T
        across = 2.0 * (np.abs(across) if self.axial else across)
        across += np.einsum("ld,ld->l", V, V)[:, None]
        across += np.einsum("kd,kd->k", S, S)
        along = np.add.outer(self.along(V), self.along(S)) if self.base else np.zeros(())
        columns = c[:, None] + C if c.any() or C.any() else np.zeros((1, 1, self.columns))
        return self.evidence_at(V.shape[1], np.add.outer(n, N), columns, along, across)

    def evidence_at(self, D: int, n: Array, c: Array, along: Array, across: Array) -> Array:
        """Log evidence of atoms with these numbers, columns c, and mean'S and |S|^2 of their sums."""
        kappas = self.kappas.reshape(-1, *np.ones(np.ndim(across), dtype=np.int64))
        squares = kappas**2 * across
        if self.base:
            squares += self.base**2 + 2 * self.base * kappas * along
        logs = tilt(D, np.maximum(squares, 0.0, out=squares))
        logs += n * (log_uniform(D) - tilt(D, kappas**2))
        logs += np.moveaxis(c, -1, 0)[: len(kappas)]
        logs += self.log_shares.reshape(kappas.shape)
        highest = logs.max(0)
        logs -= highest
        total = np.exp(logs, out=logs).sum(0)
        return np.asarray(np.where(n > 0, highest + np.log(total) - tilt(D, np.asarray(self.base**2)), 0.0))

    def mode(self, rows: Array) -> Array:
        """Direction of the expected atom; the mean if there is none."""
        S = self.parts(rows)[2]
        expected = np.zeros(S.shape)
        for kappa, share, a in zip(self.kappas, *self.shares(rows), strict=True):
            expected += (share * a)[..., None] * (self.base * self.mean + kappa * S)
        return directions_of(expected, self.mean)

    def shares(self, rows: Array) -> tuple[Array, Array]:
        """Of each node (G, ...): its probability given an atom's values, and the slope of the tilt there."""
        n, c, S = self.parts(rows)
        D, along, across = S.shape[-1], self.along(S), np.einsum("...d,...d->...", S, S)
        logs, slopes = [], []
        for g, (kappa, log_share) in enumerate(zip(self.kappas.tolist(), self.log_shares, strict=True)):
            squares = np.maximum(self.base**2 + 2 * self.base * kappa * along + kappa**2 * across, 0.0)
            tilts, a = tilt_and_slope(D, squares)
            logs.append(tilts + c[..., g] - n * float(tilt(D, np.asarray(kappa**2))) + log_share)
            slopes.append(a)
        odds = np.exp(np.array(logs) - np.max(logs, axis=0))
        return odds / odds.sum(0), np.array(slopes)

    def draw(self, sums: Array, rng: np.random.Generator) -> Array:
        """Atoms (K, D) given sums: a concentration of the grid, then von Mises-Fisher."""
        shares, _ = self.shares(sums)
        node = (rng.random(len(sums)) > np.cumsum(shares, axis=0)[:-1]).sum(0)
        pull = self.base * self.mean + self.kappas[node, None] * self.parts(sums)[2]
        return draw_directions(directions_of(pull, self.mean), np.linalg.norm(pull, axis=1), rng)

    def learned(self, sums: Array, own: OwnTilts | None, typical: float) -> Mixed:
        """Hyperparameters at a maximum reached from the present ones, given atoms' rows.

        Without `own`, and where no atom has two values, concentrations stay as they are.
        """
        seen = sums[:, 0] > 0
        held = sums[seen]

        def own_of_held(kappas: Array) -> tuple[Array, Array]:
            assert own is not None
            value, slope = own(kappas)
            return value[:, seen], slope[:, seen]

        if own is None or not (held[:, 0] > 1).any():
            n, c, S = self.parts(held)
            fixed = tilt(S.shape[1], self.kappas**2)[:, None] * n - c.T[: len(self.kappas)]
            return _maximise(held, lambda _: (fixed, np.zeros(fixed.shape)), None, self)[1]
        firsts = [self]
        if self.columns > 1 and (held[:, 0] >= FEWEST_VALUES).any():
            firsts = [self._replace(diversity=d) for d in (max(self.diversity, FIRST_DIVERSITY), 0.0)]
        return max((_maximise(held, own_of_held, typical, first) for first in firsts), key=lambda x: x[0])[1]


def even_tilts(n: Array, D: int) -> OwnTilts:
    """Of atoms of so many values of weight one each."""

    def at(kappas: Array) -> tuple[Array, Array]:
        value, slope = tilt_and_slope(D, kappas**2)
        return value[:, None] * n, (kappas * slope)[:, None] * n

    return at


def weighted_tilts(weight: Array, labels: Index, D: int) -> OwnTilts:
    """Of atoms of values with these weights and labels."""
    add = ByAtom(labels)

    def at(kappas: Array) -> tuple[Array, Array]:
        value, slope = tilt_and_slope(D, (kappas * weight[:, None]) ** 2)
        return add(value).T, add(kappas * weight[:, None] ** 2 * slope).T

    return at


def _maximise(held: Array, own: OwnTilts, typical: float | None, at: Mixed) -> tuple[float, Mixed]:
    """The best value and where it is: the mean is turned, then all concentrations are climbed, in turn.

    Without a `typical` weight those of values stay as they are.
    """
    S = at.parts(held)[2]
    D, across = S.shape[1], np.einsum("kd,kd->k", S, S)

    def value(at: Mixed) -> float:
        return value_and_slopes(_along(S, at), across, D, own, at)[0]

    def climbed(at: Mixed) -> Mixed:
        along = _along(S, at)

        def target(x: Array) -> tuple[float, Array]:
            there = at._replace(kappa=float(np.exp(x[0])), base=float(D * np.expm1(x[1])), diversity=float(x[2]))
            found, slopes = value_and_slopes(along, across, D, own, there)
            return found, slopes * (1.0, D + there.base, 1.0)

        x = np.array([np.log(at.kappa), np.log1p(at.base / D), at.diversity])
        low, high = x.copy(), x.copy()
        low[1], high[1] = 0.0, 0.0 if at.axial else max(float(np.log1p(CONCENTRATIONS[1])), x[1])
        if typical is not None:
            bounds = np.log(CONCENTRATIONS[0] / typical), np.log(CONCENTRATIONS[1] * D / typical)
            low[0], high[0] = min(bounds[0], x[0]), max(bounds[1], x[0])
            if at.diversity and (held[:, 0] >= FEWEST_VALUES).any():
                low[2], high[2] = 0.0, MOST_DIVERSITY
        x = climb(target, x, low, high)
        kappa = at.kappa if typical is None else float(np.exp(x[0]))
        return at._replace(kappa=kappa, base=float(D * np.expm1(x[1])), diversity=float(x[2]))

    best = value(at)
    for _ in range(MOST_ROUNDS):
        before = best
        best, at = max(((value(there), there) for there in _turned(held, at)), key=lambda x: x[0])
        there = climbed(at)
        found = value(there)
        best, at = (found, there) if found > best else (best, at)
        if best - before < ENOUGH:
            break
    return best, at


def _turned(held: Array, at: Mixed) -> list[Mixed]:
    """As it is, the mean turned by expectation maximisation, and further (as in `von_mises_fisher`)."""
    if at.axial:
        return [at]
    shares, slopes = at.shares(held)
    pull = (shares * slopes * at.kappas[:, None]).sum(0) @ at.parts(held)[2]
    back = at.base * float((shares * slopes).sum()) * at.mean
    return [at, *(at._replace(mean=direction_of(x, at.mean)) for x in (pull + back, pull))]


def _along(S: Array, at: Mixed) -> Array:
    """How far sums (K,) lie along the mean; zero where there is none."""
    return np.zeros(len(S)) if at.axial else np.asarray(S @ at.mean)


def value_and_slopes(along: Array, across: Array, D: int, own: OwnTilts, at: Mixed) -> tuple[float, Array]:
    """Log likelihood and log prior but for constants, and slopes in log kappa, base and diversity.

    Of the atoms' sums S `along` = mean'S (K,) and `across` = |S|^2 (K,) are needed, and what their values' densities
    are divided by, `own`.
    """
    kappas = at.kappas[:, None]
    tilts, a = tilt_and_slope(D, np.maximum(at.base**2 + 2 * at.base * kappas * along + kappas**2 * across, 0.0))
    by_kappa, by_base = a * (at.base * along + kappas * across), a * (at.base + kappas * along)
    value, slope = own(at.kappas)
    by_kappa = by_kappa - slope
    logs = tilts - value + at.log_shares[:, None]
    highest = logs.max(0)
    odds = np.exp(logs - highest)
    whole = odds.sum(0)
    shares = odds / whole
    base_tilt, base_slope = tilt_and_slope(D, np.asarray(at.base**2))
    total = float((highest + np.log(whole)).sum() - len(along) * base_tilt) + at.log_prior()
    moving = (shares * kappas * by_kappa).sum(1)
    slopes = np.array([moving.sum(), (shares * by_base).sum() - len(along) * at.base * base_slope, moving @ at.nodes])
    if at.reference:
        slopes -= (at.kappa / (at.kappa + at.reference), 0.0, ALIKE)
    return total, slopes
