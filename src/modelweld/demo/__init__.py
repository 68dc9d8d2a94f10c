"""To try things out: simulated sites, measures, four hospitals with real patients.

Public are `simulate`, `metrics` and `hospitals`.
"""
