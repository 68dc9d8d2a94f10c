"""How probable a matching is: the Beta-Bernoulli process, a learned spectrum, atoms in pieces.

Internal: docs/public.md says what is not.
"""
