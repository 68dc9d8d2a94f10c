"""A table of points in, labels and scores out."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError, first_repeated
from modelweld.files.limits import naming
from modelweld.files.numpy_files import read_npy
from modelweld.files.tables import open_csv
from modelweld.inputs.feature_names import same_but_for_case
from modelweld.inputs.local_model import check_values


def read_points(path: Path, features: Sequence[str] | None) -> tuple[Array, list[str]]:
    """The columns of a csv file that the model needs, in its order, or all; and what they are called."""
    with naming(path), open_csv(path) as (header, lines):
        wanted = list(features) if features is not None else header
        if lacking := [name for name in wanted if name not in header]:
            missing = f"it has no column {lacking[0]!r}{same_but_for_case(lacking, header)}"
            raise InputError(f"{missing}; the model needs {', '.join(wanted)}. --features chooses some of a mixture's.")
        twice = first_repeated(name for name in header if name in wanted)
        if twice is not None:
            raise InputError(f"column {twice!r} comes twice; which one is meant cannot be known.")
        columns = [header.index(name) for name in wanted]
        rows = [[_number(line, at, header, lines.line_num + 1) for at in columns] for line in lines if line]
        if not rows:
            raise InputError("it needs a header and at least one row.")
    return np.array(rows), wanted


def read_labels(path: Path, column: str, features: Sequence[str] | None) -> tuple[Array, list[str], list[str]]:
    """Rows of a csv file, the labels that stand in one column, and what the others are called."""
    with naming(path), open_csv(path) as (header, lines):
        if header.count(column) != 1:
            found = f"{column!r} is there {header.count(column)} times: {', '.join(header)}"
            raise InputError(f"labels stand in one column; {found}.")
        at = header.index(column)
        labels = [line[at] if at < len(line) else "" for line in lines if line]
    X, names = read_points(path, features or [name for name in header if name != column])
    return X, labels, names


def _number(line: list[str], at: int, header: list[str], row: int) -> float:
    """A finite number, or an error that says where there is none."""
    try:
        found = float(line[at])
    except (ValueError, IndexError):
        found = math.nan
    if not math.isfinite(found):
        shown = repr(line[at][:40]) if at < len(line) else "nothing"
        raise InputError(f"line {row}, column {header[at]!r}: a finite number is needed; found {shown}.")
    return found


def read_data(path: Path, model: object, features: Sequence[str] | None) -> tuple[Array, list[str] | None]:
    """A site's own data, and the names of its columns: those given, else the model's, else the file's."""
    named = getattr(model, "feature_names_in_", None) if features is None else features
    names = None if named is None else list(map(str, named))
    if path.suffix.lower() == ".csv":
        X, names = read_points(path, names)
    else:
        with naming(path):
            if path.suffix.lower() != ".npy":
                raise InputError(f"the data are a .csv or a .npy file; found {path.suffix or 'no ending'!r}.")
            X = check_values(read_npy(path)["values"], "the data")
    wanted = getattr(model, "n_features_in_", X.shape[-1])
    if X.ndim != 2 or X.shape[1] != wanted:
        found = f"the model was fitted on {wanted} columns, and the data have shape {X.shape}"
        raise InputError(f"{path}: {found}. Name the columns of a csv file: --features.")
    return X, names


def apply_model(model: object, X: Array) -> tuple[list[str], list[list[str]]]:
    """Labels and scores that a model gives every row: header and lines."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # columns were chosen by name
        columns = _predict(model, X)
    lines = [
        [f"{x:.10g}" if isinstance(x, (float, np.floating)) else str(x) for x in row]
        for row in zip(*columns.values(), strict=True)
    ]
    return list(columns), lines


def _predict(model: object, X: Array) -> dict[str, Sequence[object]]:
    """Columns of the output by name."""
    if not hasattr(model, "predict"):
        raise InputError(f"a {type(model).__name__} has no predict: use it from Python, fusion.model().")
    if type(model).__name__ == "SparseGP":
        return dict(zip(("mean", "std"), model.predict(X, return_std=True), strict=True))
    columns = {"label": model.predict(X)}
    if hasattr(model, "predict_proba"):
        columns["probability"] = model.predict_proba(X).max(axis=1)
    if hasattr(model, "score_samples") and np.shape(scores := model.score_samples(X)) == (len(X),):
        columns["score"] = scores
    elif hasattr(model, "transform") and hasattr(model, "cluster_centers_"):
        columns["distance"] = model.transform(X).min(axis=1)
    return columns


FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets know a formula."""


def csv_text(lines: Sequence[Sequence[str]]) -> str:
    r"""A table as text; words that a spreadsheet would run, such as the name of a class, are quoted.

    Examples
    --------
    >>> print(csv_text([["label", "score"], ["=1+1", "-2.5"]]))
    label,score
    '=1+1,-2.5
    <BLANKLINE>
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_harmless(cell) for cell in line] for line in lines)
    return text.getvalue()


def _harmless(cell: str) -> str:
    if not cell.startswith(FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
