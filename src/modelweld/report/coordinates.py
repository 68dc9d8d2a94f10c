"""Where local and global values lie: side by side as columns, how far apart, on a map, and in which order to show.

When groups live and where they go, where sites have times: what the page draws as a timeline and as paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import modelweld
from modelweld.core.family import is_signless, sum_by_atom
from modelweld.core.values import Array, Index, Key, blocks
from modelweld.files.numpy_files import SHARES_SUM
from modelweld.inputs.clock import number_of, spell
from modelweld.inputs.sets import columns_of
from modelweld.report.text import DRAWN, LEVEL, Content, exact, group_word, round_digits, several, short
from modelweld.time.evolution import interval, timeline_board
from modelweld.time.timeline import places_of_values, smooth

if TYPE_CHECKING:
    from modelweld.time.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Values:
    """Local values (N, D) and global ones (K, D) of all arrays that decided a matching, side by side.

    `seen` says which local values are known, `columns` what they are called, `keys` which arrays they are from,
    `labels` (N,) whose global value each is. If global values are `shares` (they add up to one), local ones were made
    so. Where atoms move, `places` (N, D) has where each value's atom is at the time of the value.
    """

    local: Array
    atoms: Array
    seen: NDArray[np.bool_]
    columns: list[str]
    shares: bool
    keys: tuple[Key, ...]
    labels: Index
    places: Array | None = None

    def about(self, part: slice, labels: Index) -> Array:
        """What these local values scatter about."""
        return self.atoms[labels[part]] if self.places is None else self.places[part]


def gather_values(fusion: modelweld.Fusion, set_name: str, keys: Sequence[Key] | None = None) -> Values:
    """Values of a set, of all arrays or those named, the way round of their atoms where they have no signs.

    A local value that was not seen is taken to be its atom's.
    """
    matching = fusion.matchings[set_name]
    keys = tuple(matching.values) if keys is None else tuple(keys)
    local, atoms, seen, columns, shares = [], [], [], [], []
    stacks = dict(zip(matching.values, fusion._fit.stacks(set_name), strict=True))
    for key in keys:
        estimates, stack = matching.values[key], stacks[key]
        values, known = stack.values, np.broadcast_to(True, stack.values.shape)
        if stack.weight is not None:
            known = stack.weight > 0
        adds_up = estimates.shape[1] > 1 and (np.abs(estimates.sum(axis=1) - 1) < SHARES_SUM).all()
        shares.append(bool(adds_up and (estimates >= 0).all()))
        if shares[-1]:
            values = np.where(known, values, 0.0)
            values = values / np.maximum(values.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        if stack.weight is not None:
            values = np.where(known, values, estimates[matching.stacked_labels])
        if key in matching.families and is_signless(matching.families[key]):
            values = np.where(agreeing(values, estimates, matching.stacked_labels)[:, None], values, -values)
        local.append(values)
        atoms.append(estimates)
        seen.append(known)
        names = columns_of(fusion._fit.first_model, key, set_name, fusion.matchings)
        columns += [f"{key} {name}".strip() for name in names] if len(keys) > 1 and isinstance(key, str) else names
    wide = local[0] if len(keys) == 1 else np.hstack(local)
    known = seen[0] if len(keys) == 1 else np.hstack(seen)
    places = None
    if matching.engine == "time" and keys == tuple(matching.values):
        places = places_of_values(*timeline_board(fusion._fit, set_name))
    return Values(wide, np.hstack(atoms), known, columns, all(shares), keys, matching.stacked_labels, places)


def agreeing(values: Array, atoms: Array, labels: Index) -> NDArray[np.bool_]:
    """Whether values (N, D) are the same way round as their atoms."""
    found = np.empty(len(values), dtype=bool)
    for part in blocks(len(values), values.shape[1]):
        found[part] = np.einsum("nd,nd->n", values[part], atoms[labels[part]]) >= 0
    return found


def deviations(values: Values, labels: Index, counts: Index) -> tuple[Array, Array]:
    """How far each local value lies from its atom (N,), in typical deviations, and members' deviations by atom (K, D).

    The typical deviation of a column is the root mean square over the values whose atom several sites hold; a distance
    is a root mean square over columns, so that 1 is usual. Deviations of atoms that one site holds are NaN.
    """
    K, D = values.atoms.shape
    squares, number, typical, known = np.zeros((K, D)), np.zeros((K, D)), np.zeros(D), np.zeros(D)
    for part, off in _about_atoms(values, labels):
        seen, shared = values.seen[part].astype(np.float64), counts[labels[part]] > 1
        off *= off
        squares += sum_by_atom(off, labels[part], K)
        number += sum_by_atom(seen, labels[part], K)
        typical += off[shared].sum(axis=0)
        known += seen[shared].sum(axis=0)
    typical = np.sqrt(typical / np.maximum(known, 1))
    used, distance = typical > 0, np.zeros(len(labels))
    for part, off in _about_atoms(values, labels):
        size = np.maximum(values.seen[part][:, used].sum(axis=1), 1)
        distance[part] = np.sqrt(((off[:, used] / typical[used]) ** 2).sum(axis=1) / size)
    spread = np.where((counts[:, None] > 1) & (number > 1), np.sqrt(squares / np.maximum(number, 1)), np.nan)
    return distance, spread


def _about_atoms(values: Values, labels: Index) -> Iterator[tuple[slice, Array]]:
    """How far local values lie from their atoms, zero where not seen, some at a time."""
    for part in blocks(len(values.local), values.local.shape[1]):
        yield part, np.where(values.seen[part], values.local[part] - values.about(part, labels), 0.0)


def variances_about_atoms(values: Values) -> Array:
    """Mean square (D,) of what was seen about the atoms."""
    squares = np.zeros(values.local.shape[1])
    for _, off in _about_atoms(values, values.labels):
        squares += (off**2).sum(axis=0)
    return np.asarray(squares / np.maximum(values.seen.sum(axis=0), 1))


def plane(values: Values, labels: Index, K: int) -> tuple[Array, Array, Array]:
    """Local and global values on the two principal axes of the local ones, and the share of variance these explain.

    Columns are divided by their standard deviation; of shares, square roots are taken instead. Atoms from number K on
    are excluded, and have no part in the axes.
    """

    def bent(x: Array) -> Array:
        return np.sqrt(np.maximum(x, 0)) if values.shares else x

    rows = np.flatnonzero(labels < K) if K else np.arange(len(labels))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), DRAWN)).astype(np.int64)]
    fitted = bent(values.local[rows])
    centre = fitted.mean(axis=0)
    unit = np.ones(1) if values.shares else fitted.std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    _, singular, found = np.linalg.svd((fitted - centre) / unit, full_matrices=False)
    axes, explained, n = np.zeros((2, fitted.shape[1])), np.zeros(2), min(2, len(found))
    axes[:n] = found[:n] * np.where(found[:n].sum(axis=1) < 0, -1.0, 1.0)[:, None]  # LAPACK's signs are arbitrary
    if (singular > 0).any():
        explained[:n] = singular[:n] ** 2 / (singular**2).sum()
    local = np.zeros((len(labels), 2))
    for part in blocks(len(values.local), values.local.shape[1]):
        local[part] = (bent(values.local[part]) - centre) / unit @ axes.T
    return local, (bent(values.atoms) - centre) / unit @ axes.T, explained


def order_by_likeness(presence: NDArray[np.bool_], K: int) -> tuple[Index, Index]:
    """Orders of sites and atoms in which those that go together are neighbours.

    Both are sorted by the first axis of a correspondence analysis of who holds the shared ones of the first K atoms;
    atoms that one site holds alone follow, in the order of these sites, then those excluded.
    """
    J, total = presence.shape
    held = presence.sum(axis=0)
    shared = np.flatnonzero((held > 1) & (np.arange(total) < K))
    table = presence[:, shared].astype(np.float64)
    rows, columns = np.sqrt(np.maximum(table.sum(axis=1), 1)), np.sqrt(np.maximum(table.sum(axis=0), 1))
    scaled = table / rows[:, None] / columns
    site_score = atom_score = None
    if min(scaled.shape) > 1:
        small = scaled if len(shared) >= J else scaled.T
        _, vectors = np.linalg.eigh(small @ small.T)
        axis = vectors[:, -2] * np.where(vectors[np.abs(vectors[:, -2]).argmax(), -2] < 0, -1.0, 1.0)
        other = small.T @ axis
        site, atom = (axis, other) if len(shared) >= J else (other, axis)
        site_score, atom_score = site / rows, atom / columns
    # round_digits, so that ties are ties, and broken by number
    sites = np.arange(J) if site_score is None else np.argsort(site_score.round(9), kind="stable")
    atoms = shared if atom_score is None else shared[np.argsort(atom_score.round(9), kind="stable")]
    rank = np.empty(J, dtype=np.int64)
    rank[sites] = np.arange(J)
    rest = np.setdiff1d(np.arange(total), shared)
    first = rank[presence[:, rest].argmax(axis=0)] if len(rest) else rest
    rest = rest[np.lexsort((rest, first, rest >= K))]
    return sites, np.concatenate([atoms, rest])


MOST_TIMES, MOST_STEPS = 200, 20_000
"""Times at which paths are drawn, evenly picked: more than a figure has room for. Times x columns of all paths, each
with the two ends of its interval: half a megabyte."""


def is_timed(fusion: modelweld.Fusion, name: str) -> bool:
    """Whether atoms of a set move."""
    return fusion.matchings[name].engine == "time" and fusion.timeline.times is not None


def tell_lives(fusion: modelweld.Fusion, name: str, values: Values, ranked: Index, shown: Index) -> Content | None:
    """When atoms of a set live, and their paths in the columns that are `ranked` first; None where nothing has a time.

    Times of the sites that are `shown` are listed, as numbers (dates: days since 1970) and in words.
    """
    if not is_timed(fusion, name):
        return None
    times, K = fusion.timeline.times or [], fusion.matchings[name].K
    lives, (board, _) = fusion.timeline.lifetimes(name), timeline_board(fusion._fit, name)
    newest = lives.newest
    steps = _steps(board, lives.alive, K)
    columns = ranked[: max(1, MOST_STEPS // max(sum(map(len, steps)), 1))]
    listed = several(K, group_word(name))
    return {
        "dated": isinstance(newest, np.datetime64),
        "moments": [exact(number_of(times[j])) for j in shown],
        "names": [spell(times[j]) for j in shown],
        "first": [spell(time) for time in lives.first[:K]],
        "last": [spell(time) for time in lives.last[:K]],
        "span": [[number_of(a), number_of(b)] for a, b in zip(lives.first[:K], lives.last[:K], strict=True)],
        "alive": [round_digits(p, 4) for p in lives.alive[:K]],
        "newest": spell(newest),
        "sentence": f"Between {spell(min(times))} and {spell(newest)} there were {listed}, of which "
        f"{(lives.alive[:K] > 0.5).sum():,} probably live at the end.",
        "columns": [values.columns[d] for d in columns],
        "level": LEVEL,
        "paths": _paths(board, steps, columns),
    }


def _steps(board: Timeline, alive: Array, K: int) -> list[Array]:
    """Times at which the path of each atom is drawn: from first to last, and on to the newest if it probably lives."""
    slots, spans = np.unique(board.times), board.lifespans()
    ends = np.where(alive > 0.5, len(slots) - 1, spans.last)
    most = min(MOST_TIMES, max(2, int(MOST_STEPS * len(slots) / max((ends - spans.first + 1)[:K].sum(), 1))))
    picked = np.unique(np.linspace(0, len(slots) - 1, most).round().astype(np.int64))
    found = []
    for k in range(K):
        first, end = int(spans.first[k]), int(ends[k])
        inside = picked[(picked > first) & (picked < end)]
        found.append(slots[np.unique(np.concatenate([[first], inside, [end]]))])
    return found


def _paths(board: Timeline, steps: list[Array], columns: Index) -> list[Content]:
    """Places of atoms at their steps, with intervals, in these columns."""
    atoms = np.repeat(np.arange(len(steps)), [len(own) for own in steps])
    place = smooth(board, atoms, np.concatenate([np.zeros(0), *steps]))
    low, high = interval(board, place, LEVEL)
    ends = np.cumsum([len(own) for own in steps])[:-1]
    parts = [np.split(x[:, columns], ends) for x in (place.mean, low, high)]
    return [
        {"times": [exact(t) for t in own], "values": short(a, 4), "low": short(b, 4), "high": short(c, 4)}
        for own, a, b, c in zip(steps, *parts, strict=True)
    ]


def places_last_seen(fusion: modelweld.Fusion, name: str) -> tuple[Array, Array]:
    """Where atoms were when they were last seen, those excluded among them, and standard errors of that."""
    board, _ = timeline_board(fusion._fit, name)
    last = board.lifespans().last
    place = smooth(board, np.arange(len(last)), np.unique(board.times)[last])
    return place.mean, np.sqrt(place.variance)


def order_by_time(found: Content, number: int) -> tuple[Index, Index]:
    """Sites by their times, and atoms, so many, by when they are seen first and last; those excluded come last."""
    span = np.array(found["span"]).reshape(-1, 2)
    atoms = np.concatenate([np.lexsort((span[:, 1], span[:, 0])), np.arange(len(span), number)])
    return np.argsort(np.array(found["moments"], dtype=np.float64), kind="stable"), atoms
