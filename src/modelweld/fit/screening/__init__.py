"""What must not decide the fit: outliers before it, shifted sites and artefacts after it.

Internal: docs/public.md says what is not.
"""
