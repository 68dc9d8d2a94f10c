"""What a reader of the built pages could stumble over: dead links inside, anything loaded from a network, no search.

python docs/tools/check_site.py build/docs
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href", "object": "data"}
"""Elements whose address the browser fetches without being asked."""

FETCHED = re.compile(r"""(?:url\(|@import)\s*['"]?\s*((?:https?:)?//[^'")\s]+)""")
"""Addresses that a style sheet fetches."""


class Page(HTMLParser):
    """Addresses in a page, and places that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, loads or is called."""
        found = {name: value for name, value in attrs if value}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found[LOADED[tag]])


@cache
def parsed(path: Path) -> Page:
    """A page that was built."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@cache
def found_at(folder: str, address: str) -> Path | None:
    """The file that an address in a page of this folder leads to; None where there is none."""
    target = Path(os.path.normpath(os.path.join(folder, address)))
    target = target / "index.html" if target.is_dir() else target
    return target if target.exists() else None


def troubles(root: Path) -> list[str]:
    """All that is wrong, one line each."""
    found = []
    for path in sorted(path for path in root.rglob("*.html") if "_static" not in path.parts):
        page, name = parsed(path), path.relative_to(root)
        for address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{name}: loads {address}")
                continue
            target = found_at(str(path.parent), unquote(parts.path)) if parts.path else path
            if target is None:
                found.append(f"{name}: no file for {address}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).places | {"", "top"}:
                found.append(f"{name}: no such place as {address}")
    for sheet in root.rglob("*.css"):
        found += [f"{sheet.relative_to(root)}: loads {a}" for a in FETCHED.findall(sheet.read_text(encoding="utf-8"))]
    index = root / "searchindex.js"
    if not index.exists() or "gaussianmixtur" not in index.read_text(encoding="utf-8"):
        found.append("search: no index, or nothing in it")
    return found


if __name__ == "__main__":
    wrong = troubles(Path(sys.argv[1]))
    print("\n".join(wrong) or "links inside lead somewhere, nothing is loaded from a network, search has an index")
    sys.exit(bool(wrong))
