"""What runs where the data lie: training, export, noise."""
