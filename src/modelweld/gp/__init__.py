"""Sparse Gaussian processes: a local model of our own."""

from modelweld.gp.kernels import Kernel
from modelweld.gp.model import Committee, SparseGP

__all__ = ["Committee", "Kernel", "SparseGP"]
