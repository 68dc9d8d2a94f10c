"""What is asked of a result: posterior, diagnostics, revision."""
