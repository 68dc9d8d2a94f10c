"""Directions whose atoms have concentrations of their own: log-normal, integrated over.

Sites agree more closely on some atoms than on others. The concentration of an atom is concentration * exp(diversity z),
z standard normal. Given its concentration an atom is as in `sphere`, so that its evidence is an integral over
evidences of the same statistics (`bessel`); at diversity zero it is that of one concentration for all.

The hyperprior before anything is matched (`log_prior`): that the noise, as a share reference / (reference +
concentration) of the scatter, is as likely to be any, and that atoms are alike,

    log p(concentration) = -log(1 + concentration / reference),      log p(diversity) = -ALIKE diversity.

Without the first, a matching of the few values that happen to lie closest is the best one where sites are few and atoms
overlap: its concentration is many times too high. The second is what makes a diversity of exactly zero the answer where
atoms do not differ. Both are measured per logarithm of the concentration.

Which directions can belong to an atom at all: those whose cosine with it is above a bound, one per atom.

Belonging to an atom with sum S rather than to one of its own scores, for a value v, in nats

    score = odds + evidence(S + v) - evidence(S) - evidence(v),

which depends on v by v'S and mean'v alone. It rises with v'S, and goes one way with mean'v, in which it is all but
straight: so the larger score at the two ends of mean'v of all values in question bounds it, and the v'S at which that
is zero is found by bisection, once per atom. All other pairs cannot beat a new atom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index, blocks
from modelweld.families.math import bessel
from modelweld.families.math.maximise import climb
from modelweld.families.math.sphere import CONCENTRATIONS, direction_of, directions_of, draw_directions

FEWEST_VALUES = 4
"""Values that some atom must have for a diversity to be learned: where there are two or three sites, a loose atom is a
few values that are not shared, and a prior that expects few atoms makes such of all of them."""

MOST_ROUNDS, ENOUGH = 30, 1e-8
"""Learning ends after this many rounds, or at the first that brings less than this many nats; after the next sweep it
goes on from where it ended."""

ALIKE = 4.0
"""Rate of the prior of diversity. At one, half of the sets of three sites in twenty dimensions whose atoms are alike
have diversities of two and more, by two to six nats; signatures, whose atoms differ, gain hundreds."""

FIRST_DIVERSITY, MOST_DIVERSITY = 0.5, 3.0
"""Where a climb begins (at zero there is no slope), and where it ends: two deviations either way are then a factor of
160,000 apart. Matchings begin with atoms that are alike: where they begin with atoms that differ, thousands of values
that are not shared find one another by chance, as loose copies, and confirm each other in it."""


class Mixed(NamedTuple):
    """Hyperparameters: mean direction and concentration of atoms (`base`), law of values' concentrations.

    Rows have a column of c for each node and another, or one where the diversity stays zero. Where values are `axial`,
    which have no sign, there is no mean, the base is zero, and a value has the sign that suits the atom.
    """

    mean: Array
    kappa: float
    diversity: float
    base: float
    reference: float = 0.0
    columns: int = bessel.COLUMNS
    axial: bool = False

    @property
    def kappas(self) -> Array:
        """Concentrations for which rows have a column c."""
        return np.asarray(self.kappa * np.exp(self.diversity * (bessel.NODES if self.columns > 1 else np.zeros(1))))

    def log_prior(self) -> float:
        """Log density of concentration and diversity; zero without a hyperprior."""
        return -float(np.log1p(self.kappa / self.reference)) - ALIKE * self.diversity if self.reference else 0.0

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows [n, c of each node, S]."""
        n, c, S = self.parts(rows)
        if not self.diversity:
            D = S.shape[-1]
            return np.asarray(
                self.singletons(rows) + bessel.tilt(D, self.squares(rows)) - bessel.tilt(D, np.asarray(self.base**2))
            )
        return self.evidence_at(S.shape[-1], n, c, self.along(S), np.einsum("...d,...d->...", S, S))

    def parts(self, rows: Array) -> tuple[Array, Array, Array]:
        """Numbers (...), columns c (..., G) and sums (..., D)."""
        return rows[..., 0], rows[..., 1 : 1 + self.columns], rows[..., 1 + self.columns :]

    def along(self, S: Array) -> Array:
        """How far sums lie along the mean (...); zero where there is none."""
        return np.zeros(S.shape[:-1]) if self.axial else np.asarray(S @ self.mean)

    def predictive(self, own: Array, sums: Array) -> Array:
        """Log densities of values at atoms (L, K)."""
        if not self.diversity:
            return self._predictive_of_one(own, sums)
        theirs, result = self.log_evidence(sums), np.empty((len(own), len(sums)))
        for part in blocks(len(own), len(sums) * len(bessel.POINTS)):
            result[part] = self._together(own[part], sums) - theirs
        return result

    def _predictive_of_one(self, own: Array, sums: Array) -> Array:
        """The same where all atoms have one concentration: one matrix product, and the tilt of squared lengths."""
        (_, _, V), (_, _, S) = self.parts(own), self.parts(sums)
        D, ours, theirs = V.shape[1], self.squares(own) - self.base**2, self.squares(sums)
        lengths = np.abs(V @ S.T) if self.axial else V @ S.T
        lengths *= 2 * self.kappa**2
        lengths += ours[:, None]
        lengths += theirs
        result = bessel.tilt(D, np.maximum(lengths, 0.0, out=lengths))
        result -= bessel.tilt(D, theirs)
        result += self.singletons(own)[:, None]
        return result

    def squares(self, rows: Array) -> Array:
        """Squared lengths of kappa_0 mean + kappa S; the same at zero to the last bit as kappa_0 squared."""
        S = self.parts(rows)[2]
        across = np.einsum("...d,...d->...", S, S)
        if self.axial:
            return np.asarray(self.kappa**2 * across)
        squares = self.base**2 + 2 * self.base * self.kappa * (S @ self.mean) + self.kappa**2 * across
        return np.asarray(np.maximum(squares, 0.0))

    def singletons(self, rows: Array) -> Array:
        """The part of the evidence that adds up over values: n (log C(0) - tilt(kappa)) + c."""
        n, c, S = self.parts(rows)
        D = S.shape[-1]
        return np.asarray(n * (bessel.log_uniform(D) - float(bessel.tilt(D, np.asarray(self.kappa**2)))) + c[..., 0])

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
        total = self.integral(self.held(D, n, c, along, across)).total
        total = total + n * bessel.log_uniform(D) - self.base_tilt(D)[0]
        return np.asarray(np.where(n > 0, total, 0.0))

    def integral(self, held: bessel.Held, slopes: bool = False) -> bessel.Integral:
        """Over the concentrations of atoms."""
        return bessel.integrate_concentration(held, float(np.log(self.kappa)), self.diversity, self.base, slopes)

    def base_tilt(self, D: int) -> tuple[float, float]:
        """Of the base, and its slope."""
        if not self.base:
            return 0.0, 0.0
        value, slope, _ = bessel.tilts_at(D, np.log([self.base]), derivatives=True)
        return float(value[0]), float(slope[0]) / self.base

    def held(self, D: int, n: Array, c: Array, along: Array, across: Array) -> bessel.Held:
        """Atoms whose values are known by their rows alone."""
        weight, own = np.ones(()), bessel.even_tilts(n, D, c[..., 0])
        if self.diversity and c.any():
            weight, own = bessel.column_tilts(n, c, D, float(np.log(self.kappa)), self.diversity)
        return bessel.Held(D, n, weight, along, across, own)

    def of_rows(self, rows: Array) -> bessel.Integral:
        """The integrals of atoms with summed rows, and their slopes."""
        n, c, S = self.parts(rows)
        held = self.held(S.shape[-1], n, c, self.along(S), np.einsum("...d,...d->...", S, S))
        return self.integral(held, slopes=True)

    def mode(self, rows: Array) -> Array:
        """Direction of the expected atom; the mean if there is none."""
        if not self.diversity:
            return directions_of(self.base * self.mean + self.kappa * self.parts(rows)[2], self.mean)
        pull, back = self.expected(rows)
        expected = pull[..., None] * self.parts(rows)[2]
        return directions_of(expected if self.axial else expected + back[..., None] * self.mean, self.mean)

    def expected(self, rows: Array) -> tuple[Array, Array]:
        """Factors (...) of an atom's sum and of the mean in the expected atom."""
        found = self.of_rows(rows)
        weighed = found.shares * found.a
        return (weighed * np.exp(found.t)).sum(0), self.base * weighed.sum(0)

    def draw(self, sums: Array, rng: np.random.Generator) -> Array:
        """Atoms (K, D) given sums: a concentration, then von Mises-Fisher."""
        found = self.of_rows(sums)
        point = (rng.random(len(sums)) > np.cumsum(found.shares, axis=0)[:-1]).sum(0)
        kappa = np.exp(found.t[point, np.arange(len(sums))])
        pull = self.base * self.mean + kappa[:, None] * self.parts(sums)[2]
        return draw_directions(directions_of(pull, self.mean), np.linalg.norm(pull, axis=1), rng)

    def fit(self, sums: Array, own: bessel.OwnTilts | None, weight: Array, typical: float) -> Mixed:
        """Hyperparameters at a maximum reached from the present ones, given atoms' rows and their mean weights (K,).

        Without `own`, and where no atom has two values, concentrations stay as they are.
        """
        n, c, S = self.parts(sums)
        held = self.held(S.shape[1], n, c, self.along(S), np.einsum("kd,kd->k", S, S))
        if own is None or not (n > 1).any():
            return _maximise(sums, held, None, self)[1]
        held = held._replace(own=own, weight=weight)
        firsts = [self]
        if self.columns > 1 and (n >= FEWEST_VALUES).any():
            firsts = [self._replace(diversity=d) for d in (max(self.diversity, FIRST_DIVERSITY), 0.0)]
        return max((_maximise(sums, held, typical, first) for first in firsts), key=lambda x: x[0])[1]


def _maximise(sums: Array, held: bessel.Held, typical: float | None, at: Mixed) -> tuple[float, Mixed]:
    """The best value and where it is: the mean is turned, then all concentrations are climbed, in turn.

    Without a `typical` weight those of values stay as they are.
    """
    S, D = at.parts(sums)[2], held.D

    def value(at: Mixed) -> float:
        total = at.integral(held._replace(along=at.along(S))).total - at.base_tilt(D)[0]
        return float(total[held.n > 0].sum()) + at.log_prior()

    def climb_to(at: Mixed) -> Mixed:
        here = held._replace(along=at.along(S))

        def target(x: Array) -> tuple[float, Array]:
            there = at._replace(kappa=float(np.exp(x[0])), base=float(D * np.expm1(x[1])), diversity=float(x[2]))
            found, slopes = value_and_slopes(here, there)
            return found, slopes * (1.0, D + there.base, 1.0)

        x = np.array([np.log(at.kappa), np.log1p(at.base / D), at.diversity])
        low, high = x.copy(), x.copy()
        low[1], high[1] = 0.0, 0.0 if at.axial else max(float(np.log1p(CONCENTRATIONS[1])), x[1])
        if typical is not None:
            bounds = np.log(CONCENTRATIONS[0] / typical), np.log(CONCENTRATIONS[1] * D / typical)
            low[0], high[0] = min(bounds[0], x[0]), max(bounds[1], x[0])
            if at.diversity and (held.n >= FEWEST_VALUES).any():
                low[2], high[2] = 0.0, MOST_DIVERSITY
        x = climb(target, x, low, high)
        kappa = at.kappa if typical is None else float(np.exp(x[0]))
        return at._replace(kappa=kappa, base=float(D * np.expm1(x[1])), diversity=float(x[2]))

    best = value(at)
    for _ in range(MOST_ROUNDS):
        before = best
        best, at = max(((value(there), there) for there in _turn(S, held, at)), key=lambda x: x[0])
        there = climb_to(at)
        found = value(there)
        best, at = (found, there) if found > best else (best, at)
        if best - before < ENOUGH:
            break
    return best, at


def _turn(S: Array, held: bessel.Held, at: Mixed) -> list[Mixed]:
    """As it is, the mean turned by expectation maximisation, which never lowers the likelihood, and further.

    Expected atoms are a_k (kappa_0 mean + kappa S_k) with the slope a_k at their squared length; the new mean is the
    direction of their sum. The part of it that only says where the mean was holds it back; without it the fixed points
    are the same, but a step may go too far.
    """
    if at.axial:
        return [at]
    found = at.integral(held._replace(along=at.along(S)), slopes=True)
    weighed = np.where(held.n > 0, found.shares * found.a, 0.0)
    pull, back = (weighed * np.exp(found.t)).sum(0) @ S, at.base * float(weighed.sum()) * at.mean
    return [at, *(at._replace(mean=direction_of(x, at.mean)) for x in (pull + back, pull))]


def value_and_slopes(held: bessel.Held, at: Mixed) -> tuple[float, Array]:
    """Log likelihood and log prior but for constants, and slopes in log kappa, base and diversity."""
    found, seen = at.integral(held, slopes=True), held.n > 0
    shares = np.where(seen, found.shares, 0.0)
    base_tilt, base_slope = at.base_tilt(held.D)
    total = float(found.total[seen].sum() - seen.sum() * base_tilt) + at.log_prior()
    by_base = (shares * found.a * (at.base + np.exp(found.t) * held.along)).sum() - seen.sum() * base_slope
    moving = shares * found.by_t
    by_diversity = (moving * (found.t - np.log(at.kappa))).sum() / at.diversity if at.diversity else 0.0
    slopes = np.array([moving.sum(), by_base, by_diversity])
    if at.reference:
        slopes -= (at.kappa / (at.kappa + at.reference), 0.0, ALIKE)
    return total, slopes


HALVINGS = 14
"""Of the interval of possible products; what is left of it is scored needlessly."""

ROUNDING = 4e-6
"""Of the length of a sum, by which products in single precision may be off."""


def contending(at: Mixed, own: Array, sums: Array, odds: Array) -> tuple[Index, Index]:
    """Values (rows of weight one) and atoms, pair by pair, that may score above zero."""
    V, S = (at.parts(rows)[2].astype(np.float32) for rows in (own, sums))
    least = (least_products(at, own, sums, odds) - ROUNDING * np.linalg.norm(S, axis=1)).astype(np.float32)
    values, atoms = [], []
    for part in blocks(len(V), len(S)):
        products = V[part] @ S.T
        if at.axial:
            np.abs(products, out=products)
        found = np.flatnonzero(products > least)
        values.append(found // max(len(S), 1) + part.start)
        atoms.append(found % max(len(S), 1))
    return np.concatenate(values), np.concatenate(atoms)


def least_products(at: Mixed, own: Array, sums: Array, odds: Array) -> Array:
    """Of each atom (K,), a product v'S below which none of these values scores above zero."""
    (_, _, V), (n, _, S) = at.parts(own), at.parts(sums)
    D, along, across, none = V.shape[1], at.along(S), np.einsum("kd,kd->k", S, S), np.zeros(at.columns)
    ends = np.quantile(at.along(V), [0.0, 1.0]) if at.base and len(V) else np.zeros(1)
    fixed = odds - at.evidence_at(D, n, none, along, across)
    alone = at.evidence_at(D, np.ones(len(ends)), none, ends, np.ones(len(ends)))[:, None]

    def score_bound(product: Array) -> Array:
        lengths = np.tile(across + 1 + 2 * product, (len(ends), 1))
        return np.asarray((fixed + at.evidence_at(D, n + 1, none, along + ends[:, None], lengths) - alone).max(0))

    low, high = -np.sqrt(across), np.sqrt(across)
    low = np.zeros(len(S)) if at.axial else low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = score_bound(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(n > 0, low, -np.inf)
