"""Special functions and optimisers that families share."""
