"""Models on another scale: units that are undone, and site effects that are corrected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.inputs.local_model import LocalModel

if TYPE_CHECKING:
    from modelweld.kinds.kind import Kind


def rescale_arrays(model: LocalModel, scale: Array, offset: Array, *, plain: bool) -> LocalModel:
    """The model of x = scale * y + offset, given that of y: places with their standard errors, and widths."""
    arrays, variance = dict(model.arrays), dict(model.variance)
    for name, values in model.arrays.items():
        if name.endswith("covariances"):
            arrays[name] = np.asarray(values) * scale[:, None] * scale
        elif name.endswith("variances"):
            arrays[name] = np.asarray(values) * scale**2
        elif name.endswith("means") or (plain and name not in model.auxiliary):
            arrays[name] = np.asarray(values) * scale + offset
            if name in variance:
                variance[name] = np.asarray(variance[name]) * scale**2
    return model.with_(arrays=arrays, variance=variance)


def correct_sites(models: Sequence[LocalModel], effects: SiteEffects, kind: Kind) -> list[LocalModel]:
    """The models as if sites did not differ."""
    differ = (effects.offset != 0).any(1) | (effects.log_scale != 0).any(1)
    return [
        kind.rescale(model, np.exp(-effects.log_scale[j]), -effects.offset[j]) if differ[j] else model
        for j, model in enumerate(models)
    ]
