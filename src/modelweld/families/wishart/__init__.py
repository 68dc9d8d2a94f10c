"""Families of covariances (Scatter, Moments, NormalWishart): their evidence, learning and first guesses.

Internal: docs/public.md says what is not.
"""
