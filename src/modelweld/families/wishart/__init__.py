"""Families of covariances (Scatter, Moments): their evidence, learning and first guesses.

Internal: docs/public.md says what is not.
"""
