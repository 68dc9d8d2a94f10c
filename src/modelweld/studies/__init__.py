"""For papers: simulated sites, rivals, measures, the textbook algorithm, the demo.

Public are `simulate`, `metrics`, `baselines` and `demo`; the other files serve these.
"""
