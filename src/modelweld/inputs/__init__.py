"""What sites send, checked, aligned by name and stacked.

Internal: docs/public.md says what is not.
"""
