"""One page of reference for each public module: names are those of docs/public.md, texts those of the docstrings."""

from __future__ import annotations

import re
from pathlib import Path

import modelweld
from tools.records import write

LINE = re.compile(r"^\| `(modelweld[.\w]*)` \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def public(docs: Path) -> dict[str, tuple[str, list[str]]]:
    """Module -> what it is for, and its names, as docs/public.md has them."""
    found = LINE.findall((docs / "public.md").read_text(encoding="utf-8"))
    return {module: (purpose.strip(), re.findall(r"`(\w+)`", names)) for module, purpose, names in found}


def home(module: str) -> str:
    """Where a module stands that the package knows by a shorter name."""
    name = module.removeprefix("modelweld.")
    return f"modelweld.{modelweld.MODULES[name]}" if name in modelweld.MODULES else module


def page(module: str, purpose: str, names: list[str], shown: set[str]) -> str:
    """The page of a module; names that the package shows too are described there."""
    lines = [
        module,
        "=" * len(module),
        "",
        f"{purpose[0].upper()}{purpose[1:]}.",
        "",
        f".. currentmodule:: {home(module)}",
        "",
    ]
    own = [name for name in names if name not in shown]
    if own:
        lines += [".. autosummary::", "   :toctree: generated", "", *(f"   {name}" for name in own), ""]
    if len(own) < len(names):
        others = [f":py:obj:`~modelweld.{name}`" for name in names if name in shown]
        lines += [f"Also known by the package itself: {', '.join(others)}.", ""]
    return "\n".join(lines)


def write_pages(docs: Path) -> None:
    """All of them; a name that the package and a room both bring is on both pages, described once."""
    modules = public(docs)
    package = set(modules["modelweld"][1])
    for module, (purpose, names) in modules.items():
        shown = set() if module == "modelweld" else package
        write(docs / "reference" / f"{module}.rst", page(module, purpose, names, shown))
    order = "\n".join(modules)
    rows = "\n".join(f"| [`{m}`]({m}.rst) | {purpose} | {len(names)} |" for m, (purpose, names) in modules.items())
    head = "# Reference\n\nEvery public name, from its docstring. [What public means](../public.md).\n\n"
    table = f"| module | what for | names |\n|---|---|---|\n{rows}\n"
    write(docs / "reference" / "index.md", f"{head}{table}\n```{{toctree}}\n:hidden:\n\n{order}\n```\n")
