"""Special functions and optimisers that families share.

Internal: docs/public.md says what is not.
"""
