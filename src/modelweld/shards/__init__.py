"""Algorithm 1 in shards: more than one machine holds."""
