"""Sparse Gaussian processes: a local model of our own."""
