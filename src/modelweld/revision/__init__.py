"""A fusion that changes: sites added and removed, with or without their values."""
