"""How sure a matching is: conditional probabilities, and a sampler."""
