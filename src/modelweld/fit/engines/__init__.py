"""Boards that do the sweeps of large jobs: compiled and sparse. Internal: docs/public.md."""
