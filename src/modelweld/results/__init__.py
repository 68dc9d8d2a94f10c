"""What is asked of a result: posterior, diagnostics, revision. Internal: docs/public.md."""
