"""Names in code on hand-written pages lead to the reference: `fuse(models)`, `fusion.confidence()`, `Gaussian`."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

NAME = re.compile(r"(?:modelweld\.)?([A-Za-z_][\w.]*)(?:\(.*\))?")
WITHOUT = ("reference/", "gallery/", "studies/", "project/")
"""Folders of pages that have links of their own, or none."""


def find_target(text: str, objects: dict[str, Any]) -> str | None:
    """The documented object that a piece of code names."""
    found = NAME.fullmatch(text)
    if found is None:
        return None
    parts = found[1].split(".")
    name = f"Fusion.{parts[1]}" if parts[0] == "fusion" and parts[1:] else found[1]
    if len(parts) == 1 and not text.startswith("modelweld.") and "(" not in text and not name[0].isupper():
        return None  # a word such as `mean`
    ends = [known for known in objects if known == f"modelweld.{name}" or known.endswith(f".{name}")]
    return min(ends, key=lambda known: (known.count("."), known), default=None)


def link(app: Any, doctree: nodes.document, page: str) -> None:
    """Make links of code in the text of a page, the first of each name in a section."""
    objects = app.env.get_domain("py").objects
    if page.startswith(WITHOUT):
        return
    seen = set[tuple[int, str]]()
    for code in list(doctree.findall(nodes.literal)):
        target = find_target(code.astext(), objects)
        section = code.parent
        while section.parent is not None and not isinstance(section, nodes.section):
            section = section.parent
        if target is None or isinstance(code.parent, (nodes.reference, nodes.title)) or (id(section), target) in seen:
            continue
        seen.add((id(section), target))
        place = objects[target]
        uri = f"{app.builder.get_relative_uri(page, place.docname)}#{place.node_id}"
        code.replace_self(nodes.reference("", "", code.deepcopy(), internal=True, refuri=uri))


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for this."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
