"""A fusion that changes: sites added and removed, with or without their values.

Internal: docs/public.md says what is not.
"""
