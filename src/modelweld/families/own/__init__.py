"""Families from a user's log density."""
