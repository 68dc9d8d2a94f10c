"""The order of programs in the gallery: what one wants to see first stands first."""

from __future__ import annotations

LEARNED = (
    *(
        "hospitals",
        "digits_seeds",
        "topics",
        "movements",
        "countries",
        "climates",
        "networks",
        "signs",
        "labels",
        "cells",
        "reruns",
        "catalogue",
    ),  # real sites
    *("worth", "confidence", "price", "families", "prior", "copies"),  # what to ask, what to choose
    *(
        "site_effects",
        "bad_site",
        "noise",
        "add_remove",
        "shards",
        "paper",
    ),  # accidents, privacy, later, more, paper
)
"""Programs by what they show; `plot_x.py` is called x. One that is not listed stands last."""


def as_one_learns(file: str) -> tuple[int, str]:
    """Where a program stands."""
    name = file.removeprefix("plot_").removesuffix(".py")
    return (LEARNED.index(name) if name in LEARNED else len(LEARNED), name)
