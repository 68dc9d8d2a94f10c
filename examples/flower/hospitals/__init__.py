"""Four hospitals train apart; one model is fused from their parameters."""
