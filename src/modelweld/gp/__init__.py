"""Sparse Gaussian processes: a local model of our own."""

from modelweld.kinds.gp_natural import Kernel, SparseGP

__all__ = ["Kernel", "SparseGP"]
