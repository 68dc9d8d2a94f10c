"""What must not decide the fit: outliers, duplicates, columns in another order.

Internal: docs/public.md says what is not.
"""
