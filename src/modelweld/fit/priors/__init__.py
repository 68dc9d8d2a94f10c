"""Priors over matchings beside the Beta-Bernoulli process. Internal: docs/public.md."""
