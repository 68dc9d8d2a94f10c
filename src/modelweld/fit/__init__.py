"""What the default call adds to the paper: search, screening, engines and a learned prior. Internal: docs/public.md."""
