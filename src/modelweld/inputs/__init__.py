"""What sites send, checked, aligned by name and stacked into one array.

Internal: docs/public.md says what is not.
"""
