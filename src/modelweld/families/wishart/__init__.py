"""Covariances: evidence, learning and first guesses of the Wishart families.

Internal: docs/public.md says what is not.
"""
