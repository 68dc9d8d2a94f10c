"""What modelweld stands on is listed, with reasons, and what pip-audit finds is never taken for silence."""

import json
import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from programs import printed_by

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
DEPENDENCIES = tomllib.loads(PROJECT)["project"]["dependencies"]


def test_the_list_has_all_that_is_needed():
    listed = json.loads(printed_by(ROOT / ".ci/audit.py", "--sbom"))
    names = {component["name"]: component["version"] for component in listed["components"]}
    assert {re.match(r"[\w-]+", line)[0] for line in DEPENDENCIES} < names.keys()
    assert listed["metadata"]["component"]["name"] == "modelweld"
    assert all(names.values())


def test_every_bound_has_a_reason():
    assert all(re.search(rf'"{re.escape(line)}", +# \w+', PROJECT) for line in DEPENDENCIES)
    assert all(">=" in line for line in DEPENDENCIES)


@pytest.mark.parametrize(
    ("said", "code", "judged"),
    [
        ("No known vulnerabilities found", 0, 0),
        ("Found 1 known vulnerability in 1 package", 1, 1),
        ("requests.exceptions.ConnectionError: Max retries exceeded", 1, 0),
        ("numpy Dependency not found on PyPI and could not be audited: numpy", 0, 0),
        ("Found 1 known vulnerability in 1 package; numpy could not be audited", 1, 1),
        ("Traceback: something else", 1, 1),
    ],
)
def test_only_silence_is_excused(said, code, judged, capsys):
    spec = spec_from_file_location("audit", ROOT / ".ci/audit.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.judged(said, code) == judged
    assert ("NOT LOOKED UP" in capsys.readouterr().out) == (judged == 0 and "No known" not in said)
    assert "audit" not in sys.modules
