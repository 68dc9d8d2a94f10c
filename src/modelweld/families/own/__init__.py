"""Families from a user's log density.

Internal: docs/public.md says what is not.
"""
