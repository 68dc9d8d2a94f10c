"""Fusions that change: sites added and removed, with their values or without (slim).

Internal: docs/public.md.
"""
