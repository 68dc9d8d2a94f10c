"""Units that people meet: what a feature of a site may be measured in, where most others measure it in another."""

from __future__ import annotations

import numpy as np

UNITS = (
    (2.205, "pounds", "kilograms"),
    (2.54, "centimetres", "inches"),
    (7.0, "days", "weeks"),
    (7.5, "mmHg", "kPa"),
    (10.0, "millimetres", "centimetres"),
    (12.0, "months", "years"),
    (17.1, "µmol/l", "mg/dl of bilirubin"),
    (18.0, "mg/dl", "mmol/l of glucose"),
    (24.0, "hours", "days"),
    (25.4, "millimetres", "inches"),
    (30.4, "days", "months"),
    (38.67, "mg/dl", "mmol/l of cholesterol"),
    (60.0, "minutes", "hours"),
    (88.4, "µmol/l", "mg/dl of creatinine"),
    (100.0, "centimetres", "metres"),
    (365.0, "days", "years"),
    (1000.0, "grams", "kilograms"),
)
"""Factors that people meet, and an example of each: small unit, large unit."""

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""

FACTORS = np.array([f for factor, *_ in UNITS for f in (factor, 1 / factor)] + [FAHRENHEIT[0], 1 / FAHRENHEIT[0]])

OFFSETS = np.array([0.0] * 2 * len(UNITS) + [FAHRENHEIT[1], -FAHRENHEIT[1] / FAHRENHEIT[0]])
"""Of all units that are tried: v = factor y + offset."""
