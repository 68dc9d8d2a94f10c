"""Algorithm 1 and the search around it.

Internal: docs/public.md says what is not.
"""
