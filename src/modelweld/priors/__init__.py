"""How probable a matching is: the Beta-Bernoulli process, a learned spectrum, atoms in pieces."""
