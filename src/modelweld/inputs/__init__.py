"""What sites send, checked, aligned by name and stacked into rows.

Internal: docs/public.md says what is not.
"""
