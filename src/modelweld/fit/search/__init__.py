"""The search around Algorithm 1: starts, merges and splits of atoms, split fragments. Internal: docs/public.md."""
