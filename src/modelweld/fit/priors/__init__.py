"""Priors over matchings beside the Beta-Bernoulli process."""
