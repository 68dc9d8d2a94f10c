"""How each site gets on with the others, and whether fusing was worth it.

Internal: docs/public.md says what is not.
"""
