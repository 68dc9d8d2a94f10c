"""Tables, one row per parameter and one column per feature: CSV and Parquet, as R, SQL and spreadsheets write them.

Two column names are kept: `count` (or `counts`), the points behind a row, and `site`, whose it is. A column `time` of
dates says when the site's model was trained; numbers under that name are a feature like any other. An empty cell means
that the value was not seen: weight zero.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError, first_repeated, load_extra
from modelweld.files import limits
from modelweld.files.tensors import NamedArrays

if TYPE_CHECKING:
    from pyarrow import ChunkedArray

NOT_SEEN = ("", "NA")
COUNT, SITE, TIME = ("count", "counts"), "site", "time"
DELIMITERS = ",;\t"
DECIMAL_COMMA = r"((?:^|[;\t])\s*\"?[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\"?\s*)(?=[;\t]|$)"
"""A cell that is a number with a comma."""

NO_FEATURE = "there is no column of a feature: found {}. The first line must name the columns."


def read_csv(path: Path) -> list[NamedArrays]:
    """The sites of a table in text, each as named arrays."""
    with open_csv(path) as (header, lines):
        return _sites(*_cells(lines, header))


@contextmanager
def open_csv(path: Path) -> Iterator[tuple[list[str], Any]]:
    """The first line of a table in text, and its other lines; separated by comma, semicolon or tab.

    Where it is not the comma that separates, it may stand for the decimal point. A path "-" is standard input.
    """
    if str(path) != "-":
        limits.size_of(path, limits.LARGEST_TABLE)
    try:
        with nullcontext(sys.stdin) if str(path) == "-" else path.open(encoding="utf-8-sig", newline="") as file:
            lines = _lines(file)
            first = next(lines, "")
            delimiter = max(DELIMITERS, key=first.count)
            if delimiter != ",":
                lines = (re.sub(DECIMAL_COMMA, r"\1.\2", line) for line in lines)
            header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
            yield header, csv.reader(lines, delimiter=delimiter)
    except UnicodeDecodeError:
        raise InputError("it is not text in UTF-8. Save the table as 'CSV UTF-8'.") from None
    except (csv.Error, ValueError) as wrong:
        if isinstance(wrong, InputError):
            raise
        raise InputError(f"it is no table: {limits.first_line(wrong)}. Save it as CSV.") from None


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(limits.LARGEST_HEADER + 1):
        if len(line) > limits.LARGEST_HEADER:
            most = limits.spell_bytes(limits.LARGEST_HEADER)
            raise InputError(f"a line of it has more than {most}. It may be a file of another kind.")
        yield line


def _cells(lines: Any, header: list[str]) -> tuple[list[str], Array, list[str] | None, list[str] | None]:
    """Names of columns, numbers (rows, columns) with NaN for what was not seen, the sites, and their dates."""
    names = header
    _check_columns(names)
    numbers = array("d")
    spelt: dict[str, list[str]] | None = None
    D = len(names)
    for row in lines:
        if not row:
            continue
        if len(row) != D:
            raise InputError(f"line {lines.line_num + 1} has {len(row)} cells, but there are {D} columns.")
        if spelt is None:
            spelt = {name: [] for name, cell in zip(names, row, strict=True) if name == SITE or _is_date(name, cell)}
            words = [(i, spelt[name]) for i, name in enumerate(names) if name in spelt]
            cells = [i for i, name in enumerate(names) if name not in spelt]
        for i, texts in words:
            texts.append(row[i])
        for i in cells:
            cell = row[i]
            numbers.append(math.nan if cell in NOT_SEEN else _number(cell.strip(), lines, names[i]))
    if spelt is None:
        spelt = {SITE: []} if SITE in names else {}
    columns = [name for name in names if name not in spelt]
    if all(name in COUNT for name in columns):
        raise InputError(NO_FEATURE.format(names))
    return columns, np.array(numbers).reshape(-1, len(columns)), spelt.get(SITE), spelt.get(TIME)


def _is_date(name: str, cell: str) -> bool:
    """Whether a column says when, by its first cell."""
    return name == TIME and re.fullmatch(r"\d{4}-\d\d.*", cell.strip()) is not None


def _number(cell: str, lines: Any, column: str) -> float:
    if cell in NOT_SEEN:
        return math.nan
    try:
        value = math.nan if "_" in cell else float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"line {lines.line_num + 1}, column {column!r}: {cell[:40]!r} is no number. Write decimals with a point; "
            "leave cells empty where a value was not seen."
        )
    return value


def _check_columns(names: list[str]) -> None:
    twice = first_repeated(name for name in names if name != "")
    if twice is not None:
        raise InputError(f"column {twice!r} comes twice; which one is meant cannot be known.")
    if "" in names or "__index_level_0__" in names:
        raise InputError("a column has no name: row numbers? Write the table without (index=False, row.names=FALSE).")
    if not [name for name in names if name not in (*COUNT, SITE)]:
        raise InputError(NO_FEATURE.format(names))
    try:
        [float(name) for name in names]
    except ValueError:
        return
    raise InputError("its first line has numbers only. The first line must name the columns.")


def _sites(columns: list[str], numbers: Array, sites: list[str] | None, times: list[str] | None) -> list[NamedArrays]:
    """The rows of every site, as named arrays; sites in the order in which they appear."""
    counted = [name for name in columns if name in COUNT]
    if len(counted) > 1:
        raise InputError(f"there are two columns of counts, {counted}: keep one.")
    if not len(numbers):
        raise InputError("it has no rows. One row per parameter is needed.")
    features = [name for name in columns if name not in COUNT]
    at = [i for i, name in enumerate(columns) if name not in COUNT]
    result = []
    for site, rows in _rows_of(sites, len(numbers)).items():
        own = numbers[rows]
        values = own[:, at]
        named: NamedArrays = {"values": np.nan_to_num(values, nan=0.0), "features": features, "site": site}
        if np.isnan(values).any():
            named["weight"] = 1.0 - np.isnan(values)
        if counted:
            named["counts"] = own[:, columns.index(counted[0])]
        if times is not None:
            named[TIME] = _one_time(times[rows] if isinstance(rows, slice) else [times[i] for i in rows], site)
        result.append(named)
    return result


def _one_time(times: list[str], site: str) -> str:
    """When a site's model was trained; all its rows say the same."""
    distinct = sorted({time.strip() for time in times})
    if len(distinct) > 1:
        raise InputError(
            f"site {site!r} has two times, {distinct[0]!r} and {distinct[1]!r}. Give each time a site of its own."
        )
    return distinct[0]


def _rows_of(sites: list[str] | None, total: int) -> dict[str, list[int] | slice]:
    """Which rows are whose; all are of one site without a name where no column says."""
    if sites is None:
        return {"": slice(total)}
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for i, site in enumerate(sites):
        rows[site].append(i)
    if len(rows) > limits.MOST_SITES:
        most = f"at most {limits.MOST_SITES:,} are read of one table"
        raise InputError(f"it has {len(rows):,} sites, but {most}. Cut it in parts.")
    return {**rows}


def read_parquet(path: Path) -> list[NamedArrays]:
    """The sites of a Parquet table, each as named arrays; needs pyarrow."""
    size = limits.size_of(path)
    pyarrow, parquet = (load_extra(m, "Parquet needs", "modelweld[tables]") for m in ("pyarrow", "pyarrow.parquet"))
    try:
        texts = [name for name in (SITE, TIME) if name in parquet.read_schema(path).names]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            limits.check_growth(file.metadata.num_rows * file.metadata.num_columns * 8, size)
            schema = file.schema_arrow
            _check_columns(list(schema.names))
            words = [SITE] if SITE in schema.names else []
            for field in schema:
                kind = field.type.value_type if pyarrow.types.is_dictionary(field.type) else field.type
                real = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
                word = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
                date = pyarrow.types.is_date(kind) or pyarrow.types.is_timestamp(kind) or word
                if field.name == TIME and date:
                    words.append(TIME)
                elif not (real or (word and field.name == SITE)):
                    raise InputError(f"column {field.name!r} holds {str(kind)[:60]}, but must hold numbers.")
            table = file.read()
            table.validate(full=True)  # words by number are within the list of words
            spelt = {name: _words(table.column(name)) for name in words}
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as wrong:
        raise InputError(f"it is no Parquet table, or damaged: {limits.first_line(wrong)}.") from None
    columns = [name for name in schema.names if name not in spelt]
    numbers = np.empty((table.num_rows, len(columns)))
    for i, name in enumerate(columns):
        numbers[:, i] = _fill(table.column(name), name)
    return _sites(columns, numbers, spelt.get(SITE), spelt.get(TIME))


def _words(column: ChunkedArray) -> list[str]:
    """The cells of a column as text, equal ones held once: a long name may stand in a million rows of a small file."""
    encoded = column.combine_chunks().dictionary_encode()
    found = [*map(str, encoded.dictionary.to_pylist()), str(None)]
    return [found[i] for i in encoded.indices.fill_null(-1).to_numpy()]


def _fill(column: ChunkedArray, name: str) -> Array:
    """The numbers of a column, NaN where it is null."""
    numbers = np.asarray(column.fill_null(0).to_numpy(), dtype=np.float64).copy()
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise InputError(
            f"row {row}, column {name!r}: {numbers[row]} is no number. Leave values empty (null) that were not seen."
        )
    numbers[column.is_null().to_numpy()] = math.nan
    return numbers
