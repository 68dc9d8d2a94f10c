"""What must not decide the fit: outliers before it, shifted sites after it.

Internal: docs/public.md says what is not.
"""
