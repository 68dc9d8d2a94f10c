"""How loops are compiled by numba: one place for the settings, and what each gives up for speed."""

from __future__ import annotations

from numba import njit

exact = njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
"""Sums may be added in another order and multiplications fused, so that loops run in vector registers; infinities and
NaN mean what they do in numpy, and so does a division by zero. `cache`: compiled once per machine; `nogil`: threads run
beside each other."""

loose = njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
"""Besides, arguments are taken to be finite: for scores that a bound on rounding guards anyway."""
