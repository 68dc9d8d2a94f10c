"""Groups that come with a date: atoms that move, are born and die. docs/time.md is for users.

Internal: docs/public.md says what is not.
"""
