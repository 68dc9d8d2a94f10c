"""The examples about components and topics run, and find what was planted."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.slow


def loaded(name):
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_signatures(tmp_path, capsys):
    known = np.random.default_rng(3).dirichlet(np.full(96, 0.1), 20).T
    head = "\t".join(["Type", *(f"S{k}" for k in range(20))])
    rows = ["\t".join([f"kind {i}", *map(str, row)]) for i, row in enumerate(known)]
    path = tmp_path / "catalogue.txt"
    path.write_text("\n".join([head, *rows]))
    fusion = loaded("signatures").main(path)
    lines = [line for line in capsys.readouterr().out.splitlines() if "cosine" in line]
    assert len(lines) == fusion.K == 10
    assert all(line.split("cohorts ")[1].split(", truly in ")[0] == line.split(", truly in ")[1] for line in lines)


def test_independent_components():
    fusion = loaded("independent_components").main()
    assert fusion.K == 14
    assert (fusion.counts > 1).sum() == 6


def test_digit_features(capsys):
    loaded("digit_features").main()
    said = capsys.readouterr().out
    own = max(float(x) for x in said.split("own: [")[1].split("]")[0].split(","))
    assert float(said.split("fused, ")[1].split("words: ")[1].split()[0]) > own


def test_topics_in_an_embedding():
    fusion = loaded("topics_in_an_embedding").main()
    assert fusion.K == 8
    assert "bread" in fusion.table().words[3]
