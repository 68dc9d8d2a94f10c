"""How sure a matching is: conditional probabilities, and a sampler.

Internal: docs/public.md says what is not.
"""
