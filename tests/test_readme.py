"""What the README shows is so: its program runs as pasted and prints what stands below it; no link is dead."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_program_prints_what_it_says(capsys):
    blocks = FENCED.findall(TEXT)
    (at,) = [i for i, (language, _) in enumerate(blocks) if language == "python"]
    names = {}
    exec(compile(blocks[at][1], "README.md", "exec"), names)
    assert capsys.readouterr().out == blocks[at + 1][1]
    assert names["model"].means_.shape == (5, 2)


def test_it_is_one_screen():
    assert len(TEXT.splitlines()) <= 80  # with the program's output and the table of speed


def test_files_and_extras_that_it_names_are_there():
    linked = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert linked
    assert [path for path in linked if not (ROOT / path).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r'"\.\[(\w+)\]"', TEXT)
    assert extras
    assert set(extras) <= set(project["optional-dependencies"])
