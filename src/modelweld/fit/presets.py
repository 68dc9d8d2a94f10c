"""The paper's setting: nothing but the core, by the family that presets start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.core import match as paper
from modelweld.core.family import with_fields
from modelweld.core.gaussian import Gaussian as PaperGaussian
from modelweld.core.matching import Matching
from modelweld.core.prior import Prior
from modelweld.core.values import SetValues
from modelweld.families.real_values import Gaussian

PAPER = PaperGaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments")
PRESET = Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments")
"""The paper's family in the core, by which presets are fitted, and the same as `modelweld.Gaussian`, which can be asked
everything else: start (1, 1), closed-form hyperparameters."""


def fit_as_printed(values: SetValues, prior: Prior, max_sweeps: int, rng: np.random.Generator) -> Matching:
    """Algorithm 1, and nothing but the core where a preset asks for it."""
    asked = zip(values.stacks, values.families, strict=True)
    families = [PAPER if family is PRESET and stack.plain else family for stack, family in asked]
    matching = paper.fit(replace(values, families=families), prior, max_sweeps, rng)
    found = matching.families.items()
    learned = {name: with_fields(PRESET, **vars(f)) if type(f) is PaperGaussian else f for name, f in found}
    return replace(matching, families=learned)
