"""What is published is in step: versions, the README outside the repository, lower bounds."""

import re
import subprocess
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import modelweld

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_versions_are_one():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert cited == modelweld.__version__
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert re.search(r'^  version: "(\S+)"$', recipe, re.MULTILINE)[1] == modelweld.__version__
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/modelweld/__init__.py"


def test_the_description_links_to_nothing_that_is_not_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https?:)", text)  # in the repository it does
    for change in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "<!--" not in text
    assert "Contributing · Design" in text


def test_oldest_versions_are_the_lower_bounds():
    spec = spec_from_file_location("oldest", ROOT / ".ci" / "oldest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = module.oldest()
    assert len(listed) == len(PROJECT["project"]["dependencies"])
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in listed)


def test_the_conda_recipe_asks_for_the_same():
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run, build = (re.search(rf"^  {part}:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1] for part in ("run", "host"))
    stated = {line.replace(" ", "") for line in re.findall(r"- (.*)", run)} - {"python>=3.11"}
    assert stated == {line.replace(" ", "") for line in PROJECT["project"]["dependencies"]}
    needed = {line.replace(" ", "") for line in re.findall(r"- (.*)", build)}
    assert needed == {*PROJECT["build-system"]["requires"], "python>=3.11", "pip"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_the_paper_cites_what_it_lists():
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text(encoding="utf-8").split("---", 2)[2]))
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited == set(listed)


def test_extras_are_ranges():
    extras = {name: lines for name, lines in PROJECT["project"]["optional-dependencies"].items()}
    assert [line for lines in extras.values() for line in lines if "==" in line] == []


def test_no_compiled_code_is_kept_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        pytest.skip("no repository: this is the source archive")
    assert re.findall(r"^.*\.(?:pyc|nbi|nbc|so)$", listed.stdout, re.MULTILINE) == []
