"""The paper: values, families, the Beta-Bernoulli prior, the matching and Algorithm 1. Imports no other zone."""
