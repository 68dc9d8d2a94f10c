"""For papers: simulated sites, rivals, measures, the textbook algorithm, the demo."""
