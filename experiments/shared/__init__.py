"""What several studies, tests and benchmarks share: simulated sets, local fits, rivals, the textbook algorithm."""
