"""Covariances: evidence, learning and first guesses of the Wishart families."""
