"""What a fused model looks like, as plain arrays: a report draws it, whatever kind it is of."""

from __future__ import annotations

from dataclasses import dataclass

from modelweld.inputs.local_model import Array
from modelweld.kinds.mixture_components import Components


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Components of a density: one per atom, and all sites' own, one site below the other."""

    atoms: Components
    members: Components


@dataclass(frozen=True, eq=False)
class Transitions:
    """Of a chain, one state per atom: expected numbers of transitions (K, K), of starts (K,) and of frames (K,)."""

    moves: Array
    starts: Array
    visits: Array


@dataclass(frozen=True, eq=False)
class Points:
    """Places (n, D) and values (n,) of a function there: one per atom, and all sites' own."""

    atoms: tuple[Array, Array]
    members: tuple[Array, Array]


Picture = Ellipses | Transitions | Points
