"""Densities that do not factorise: importance sampling round the modes of the posterior, with common random numbers.

There are no sufficient statistics that add up, so a row says which value it is: rows are indicators over a table of the
distinct values, sums of rows count the members of an atom, and the evidence is a function of those counts. Two modes of
the posterior are looked for (Newton), draws t_s are taken from Student distributions q with the curvature found there
(a quarter of them with that of the prior), and with g the normal approximation at the first mode, of known integral Z,

    log evidence = log Z + log sum over s of p(t_s) / q(t_s) - log sum over s of g(t_s) / q(t_s),

p being the density of members and t_s together. It is exact where the posterior is normal, and its error is known from
the scatter of the terms. All atoms use the same underlying draws, so the evidence is one function of matching and
hyperparameters, and that function can be climbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from modelweld.errors import AccuracyWarning, InputError, warn_user
from modelweld.families.base import sum_by_atom
from modelweld.families.own.importance import Functions, Integral, base_draws, functions_of
from modelweld.families.own.jax_functions import Hyper, returned_shapes
from modelweld.families.own.user_density import UserDensity
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack

WORST_ERROR = 0.1
"""Standard error of a log evidence, in nats, above which there is a warning."""

SMALLEST_EFFECT = 0.05
"""Share of the draws that must carry the integral, as effective sample size, else its error cannot be trusted."""

FEWEST_DRAWS = 64
"""With fewer draws the scatter of the terms says little about the error."""

BATCH, PLACES = 32, 4
"""Atoms computed in one go, and steps of the number of their members (4, 16, 64, ...): few sizes are compiled."""


@dataclass(frozen=True, eq=False)
class GeneralDensity(UserDensity):
    """A user's density that does not factorise; made by `from_density`.

    `table` holds the distinct values that `seeing` was shown; `draws` is the number of draws per integral.
    """

    draws: int = 512
    table: Array | None = None
    known: dict[bytes, Integral] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < FEWEST_DRAWS or self.draws & (self.draws - 1):
            raise InputError(
                f"from_density: draws is a power of two, {FEWEST_DRAWS} or more, such as 512; found {self.draws}."
            )

    @property
    def functions(self) -> Functions:
        """The user's functions, compiled."""
        return functions_of(self.log_density, self.log_base, self.positive)

    def seeing(self, stack: Stack) -> Self:
        """With the table of these values, sorted: the order in which they stand does not matter."""
        values = stack.values if stack.weight is None else stack.values[(stack.weight > 0).all(-1)]
        table = np.unique(values + 0.0, axis=0)  # no negative zeros
        return self if self.table is not None and np.array_equal(table, self.table) else replace(self, table=table)

    def check(self, stack: Stack) -> None:
        """One number each."""
        v = stack.values[0]
        theta = self.guessed(stack.values[:1])[0]
        for name, shape in returned_shapes(self.log_density, self.log_base, v, theta, self.hyper).items():
            if shape != ():
                raise InputError(
                    f"from_density: with factorises=False {name} returns one number; found shape {shape}. Add up over "
                    "coordinates, or say factorises=True if it is a product over coordinates (much faster)."
                )

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """A value is seen as a whole or not at all."""
        if (found := super().misfit(stack)) is not None or stack.weight is None:
            return found
        seen = (stack.weight > 0).sum(1)
        partly = (seen > 0) & (seen < stack.weight.shape[1])
        row = int(partly.argmax())
        return (row, f"are seen whole or not at all; found {seen[row]} coordinates seen") if partly.any() else None

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """Which value of the table each one is (L, T)."""
        place = {value.tobytes(): i for i, value in enumerate(self._table)}
        rows = np.zeros((len(values), len(self._table)))
        for i, value in enumerate(values + 0.0):
            if weight is None or weight[i].all():
                if value.tobytes() not in place:
                    raise InputError("from_density: rows are of values that family.seeing(stack) has been shown.")
                rows[i, place[value.tobytes()]] = 1.0
        return rows

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the members behind summed rows, by importance sampling."""
        return self._of_each(rows, "log_evidence")

    def evidence_error(self, rows: Array) -> Array:
        """Standard error of the log evidence."""
        return self._of_each(rows, "error")

    def effective_share(self, rows: Array) -> Array:
        """Share of the draws that carries the integral: effective sample size over their number (zero: no members)."""
        return self._of_each(rows, "effect")

    def estimate(self, rows: Array) -> Array:
        """Posterior mode of the atom, the highest that was found."""
        flat = rows.reshape(-1, rows.shape[-1])
        return np.stack([found.mode for found in self._integrals(flat)]).reshape(*rows.shape[:-1], -1)

    def rows_change(self, stack: Stack) -> bool:
        """Rows only say which value it is."""
        return False

    def watched(self, sums: Array) -> Self:
        """Warn, once, if an evidence is uncertain or rests on few draws."""
        error = float(self.evidence_error(sums).max(initial=0.0))
        held = sums.any(-1)
        effect = float(self.effective_share(sums[held]).min(initial=1.0))
        if (error <= WORST_ERROR and effect >= SMALLEST_EFFECT) or self.warned:
            return self
        warn_user(
            f"log evidences have standard errors of up to {error:.2g} nats, and as few as {effect * self.draws:.0f} of "
            f"{self.draws} draws carry the integral. Give from_density more draws; if log_density is a product over "
            "coordinates, say factorises=True.",
            AccuracyWarning,
        )
        return replace(self, warned=True)

    def held_nodes(self, stack: Stack, labels: Index) -> Callable[[Array, Hyper], tuple[float, Hyper]]:
        """Sum of log evidences with the present draws, and its gradient."""
        sums = sum_by_atom(self.rows(stack.values, stack.variance, stack.weight), labels)
        sums = sums[sums.any(-1)]
        found = self._integrals(sums)
        batches = []
        for M, part in _batches(list(sums)):
            members, counts = _pad([sums[i] for i in part], M)
            own = [found[part[min(i, len(part) - 1)]] for i in range(BATCH)]
            nodes, log_weight = np.stack([x.nodes for x in own]), np.stack([x.log_weight for x in own])
            batches.append((self._table[members], counts, nodes, log_weight))
        others = {name: self.hyper[name] for name in self.fixed}
        ascent = self.functions.ascent

        def total(x: Array, units: Hyper) -> tuple[float, Hyper]:
            results = [ascent(self._split(x), units, others, *batch) for batch in batches]
            gradient = {name: np.sum([slope[name] for _, slope in results], axis=0) for name in self.free}
            return sum(float(value) for value, _ in results), gradient

        return total

    @property
    def _table(self) -> Array:
        if self.table is None:
            raise InputError("from_density: no values have been shown yet; family.seeing(stack) does so.")
        return self.table

    def _of_each(self, rows: Array, what: str) -> Array:
        """One number of the integral of every atom (...); zero for atoms without members."""
        flat = rows.reshape(-1, rows.shape[-1])
        held = flat.any(-1)
        result = np.zeros(len(flat))
        result[held] = [getattr(found, what) for found in self._integrals(flat[held])]
        return result.reshape(rows.shape[:-1])

    def _integrals(self, sums: Array) -> list[Integral]:
        """Integrals of atoms with these counts of members (B, T), each computed once."""
        keys = [_key(row) for row in sums]
        new = {key: row for key, row in zip(keys, sums, strict=True) if key not in self.known}
        names, rows = list(new), list(new.values())
        theta = self.guessed(self._table)
        for M, part in _batches(rows):
            members, counts = _pad([rows[i] for i in part], M)
            arrays = [np.asarray(x) for x in self._integrate(self._table[members], counts, theta[members])]
            self.known.update({names[i]: Integral(*(x[b] for x in arrays)) for b, i in enumerate(part)})
        return [self.known[key] for key in keys]

    def _integrate(self, values: Array, counts: Array, guesses: Array) -> Integral:
        """Integrals of a batch of atoms with members (BATCH, M, D), counts (BATCH, M) and guesses (BATCH, M, d)."""
        f, data = self.functions, (values, counts, self.hyper)
        centre = (counts[..., None] * guesses).sum(1) / np.maximum(counts.sum(1), 1.0)[:, None]
        everywhere = np.broadcast_to(self.guessed(self._table).mean(0), centre.shape)
        begin = np.concatenate([guesses, centre[:, None], everywhere[:, None]], axis=1)
        batch = np.arange(BATCH)
        heights = np.asarray(f.heights(begin, *data))
        mode = f.mode(begin[batch, heights.argmax(1)], *data)
        root = f.root(mode, *data)
        # the second mode is looked for where draws about the first would miss most
        other = f.mode(begin[batch, np.asarray(f.excess(heights, begin, mode, root)).argmax(1)], *data)
        # posteriors of few members can have shoulders as wide as the prior
        wide = f.root(mode, values, 0 * counts, self.hyper)
        draws = base_draws(self.draws, centre.shape[1])
        return Integral(*f.integral(mode, root, other, f.root(other, *data), wide, draws, *data))


def _key(row: Array) -> bytes:
    """Which members an atom has, and how often."""
    members = np.flatnonzero(row)
    return members.tobytes() + row[members].tobytes()


def _batches(sums: list[Array]) -> Iterator[tuple[int, list[int]]]:
    """Atoms by the number of places for members they need, and in batches: few sizes, so that few are compiled."""
    by_size: dict[int, list[int]] = {}
    for i, row in enumerate(sums):
        M = PLACES
        while np.count_nonzero(row) > M:
            M *= PLACES
        by_size.setdefault(M, []).append(i)
    return ((M, part[a : a + BATCH]) for M, part in by_size.items() for a in range(0, len(part), BATCH))


def _pad(sums: list[Array], M: int) -> tuple[Index, Array]:
    """Members (BATCH, M) of atoms and how often each is there; padded with values that are there zero times."""
    members, counts = np.zeros((BATCH, M), dtype=np.int64), np.zeros((BATCH, M))
    for k, row in enumerate(sums):
        there = np.flatnonzero(row)
        members[k] = there[0] if len(there) else 0
        members[k, : len(there)], counts[k, : len(there)] = there, row[there]
    members[len(sums) :] = members[len(sums) - 1]
    return members, counts
