"""For papers: simulated sites, rivals, measures, the textbook algorithm, the demo.

Public are `simulate`, `metrics`, `baselines` and `hospitals`; the other files serve these.
"""
