"""Links of the Markdown files to the rest of the repository: to the page that has it, or the path in so many words.

On the site there is no `../experiments/x.json` to open. So that files read well in the repository and pages on
the site, files keep their links, and what is on no page is named by where it stands.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "studies/benchmarks.md",
    "benchmarks/shards.md": "studies/shards.md",
    **{
        f"experiments/{p.parent.name}/README.md": f"studies/{p.parent.name}.md"
        for p in ROOT.glob("experiments/*/README.md")
    },
    **{
        f"experiments/{p.parent.name}/tables.md": f"studies/{p.parent.name}.md"
        for p in ROOT.glob("experiments/*/tables.md")
    },
}
"""File of the repository -> page of the site, from docs/."""


def turned(text: str, folder: str, page_folder: str) -> str:
    """A Markdown text that stood in a folder of the repository, for a page in `page_folder` of docs/."""

    def link(found: re.Match[str]) -> str:
        words, target, part = found[1], found[2], found[3] or ""
        path = os.path.normpath(os.path.join(folder, target))
        inside = path.removeprefix("docs/") if path.startswith("docs/") else PAGES.get(path)
        if inside is not None:
            return f"[{words}]({os.path.relpath(inside, page_folder or '.')}{part})"
        bare = words.strip("`")
        return f"`{path}`" if bare in (path, target, Path(path).name) else f"{words} (`{path}`)"

    def picture(found: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join(folder, found[2]))
        return f"![{found[1]}]({os.path.relpath(path, os.path.join('docs', page_folder))})"

    return PICTURE.sub(picture, LINK.sub(link, text))


def read(app: Any, page: str, source: list[str]) -> None:
    """Turn a page's links as it is read."""
    if Path(app.env.doc2path(page)).suffix == ".md" and not page.startswith("studies/"):
        folder = str(Path(page).parent)
        folder = "" if folder == "." else folder
        source[0] = turned(source[0], os.path.join("docs", folder), folder)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for this."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
