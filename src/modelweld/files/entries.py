"""What tensors and manifests of files are, as types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Tensor = NDArray[np.generic]
"""Numbers of any type that a file may hold."""

NamedArrays = dict[str, ArrayLike]
"""Arrays without a manifest, and names of features and of the site beside them."""

Number = float | dict[str, str]
"""A number, or one that JSON lacks, spelt out: ``{"float": "inf"}``."""

Spelt = str | list[str]
"""The name of an array, or names of several."""

Entry = dict[str, Any]
"""What a manifest says of a model, an array, a family or itself: the published `schema.json`, by which it is checked
before it is read, has its layout."""
