"""Algorithm 1 and the search around it."""
