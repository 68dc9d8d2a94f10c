"""The paper: values, families, the Beta-Bernoulli prior, the matching and Algorithm 1; imports no other zone.

Internal: docs/public.md.
"""
