"""Sparse Gaussian processes: a local model of our own."""

from modelweld.gp.model import Committee, Kernel, SparseGP

__all__ = ["Committee", "Kernel", "SparseGP"]
