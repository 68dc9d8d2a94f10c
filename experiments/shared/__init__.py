"""What several studies, tests and benchmarks share: simulated sets, rivals, measures."""
