"""The order of sections and programs in the gallery: what one wants to see first stands first."""

from __future__ import annotations

SECTIONS = {
    "sites": "hospitals digits_seeds topics movements countries climates networks images signs",
    "clusterings": "labels cells reruns catalogue",
    "questions": "worth confidence price families prior copies",
    "practice": "site_effects bad_site noise add_remove shards paper",
}
"""Folder -> its programs by what they show; `plot_x.py` is called x. One that is not listed stands last."""


def order_sections(folder: str) -> int:
    """Where a section stands."""
    return list(SECTIONS).index(folder.rsplit("/", 1)[-1])


def order_programs(file: str) -> tuple[int, str]:
    """Where a program stands in its section."""
    name, listed = file.removeprefix("plot_").removesuffix(".py"), " ".join(SECTIONS.values()).split()
    return (listed.index(name) if name in listed else len(listed), name)
