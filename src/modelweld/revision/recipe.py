"""How a fusion was made, so that the same can be done again with other sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


class Recipe(NamedTuple):
    """What was received, as it was, and how it was fused: `fuse` takes sites and their names."""

    given: Sequence[Any]
    fuse: Callable[[Sequence[Any], Sequence[str]], Fusion]
