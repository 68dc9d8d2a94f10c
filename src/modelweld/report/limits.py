"""How much a page, a printed table or a figure shows; what is left out is said there, and the fusion has all of it."""

LISTED = 8
"""Names, values, words or columns on a line."""

NAMED = 40
"""Groups, states, columns or doubtful matches that have a row, a column or a label of their own."""

NOTED = 500
"""Alerts, and parameters that are set aside or in pieces."""

DRAWN = 2_000
"""Local parameters that are drawn, or that principal axes are fitted to, evenly picked: more would look the same."""

LEVEL = 0.9
"""Probability with which intervals hold what they are about."""

MOST_PAIRS = 20_000_000
"""Local parameters, or sites, x atoms up to which there is a number for every pair: some seconds, 160 megabytes."""
