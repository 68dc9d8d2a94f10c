"""Site effects: offsets and scales of sites, estimated with the matching and corrected before it.

Internal: docs/public.md says what is not.
"""
