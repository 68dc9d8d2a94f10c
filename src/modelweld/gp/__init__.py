"""Sparse Gaussian processes: a local model of our own."""

from modelweld.kinds.gp_predictors import Committee, Kernel, SparseGP

__all__ = ["Committee", "Kernel", "SparseGP"]
