"""Sparse Gaussian processes: a local model of our own."""

from modelweld.gp.variational import Committee, Kernel, SparseGP

__all__ = ["Committee", "Kernel", "SparseGP"]
