"""Anybody's groups: cells of many donors, reruns of one clustering, names from a catalogue."""
