"""Pages of studies, benchmarks and the project's own files, made from the files themselves."""

from __future__ import annotations

from pathlib import Path

from tools.outward_links import ROOT, turned

PROJECT = {
    "changes": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "conduct": "CODE_OF_CONDUCT.md",
    "security": "SECURITY.md",
}
"""Page -> file at the root of the repository."""


def write(path: Path, text: str) -> None:
    """Write a page if it changed, so that Sphinx reads again only what did."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def taken(file: Path, page_folder: str) -> str:
    """A Markdown file of the repository, its links turned for a page."""
    folder = str(file.parent.relative_to(ROOT))
    return turned(file.read_text(encoding="utf-8"), "" if folder == "." else folder, page_folder)


def lowered(text: str) -> str:
    """The same with headings one level lower, code left alone."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        lines.append(f"#{line}" if line.startswith("#") and not fenced else line)
    return "\n".join(lines)


def study(folder: Path) -> str:
    """A study: what its README says, then the tables that its run wrote."""
    text = taken(folder / "README.md", "studies")
    tables = folder / "tables.md"
    if tables.exists():
        text += f"\n## Measured tables\n\nFrom `experiments/{folder.name}/tables.md`, as the run wrote them.\n\n"
        text += lowered(lowered(taken(tables, "studies")))
    return text


def write_pages(docs: Path) -> None:
    """All pages that come from files outside docs/."""
    for page, file in PROJECT.items():
        write(docs / "project" / f"{page}.md", taken(ROOT / file, "project"))
    for readme in ROOT.glob("experiments/*/README.md"):
        if readme.parent.parent.name == "experiments" and readme.parent.name != "data":
            write(docs / "studies" / f"{readme.parent.name}.md", study(readme.parent))
    write(docs / "studies" / "benchmarks.md", taken(ROOT / "benchmarks" / "README.md", "studies"))
    write(docs / "studies" / "shards.md", taken(ROOT / "benchmarks" / "shards.md", "studies"))
