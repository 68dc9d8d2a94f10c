"""Rows of a study as tables: means over seeds, and differences on the same draws with their intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paired import paired

Rows = list[dict[str, object]]


def table(rows: Rows) -> str:
    """Means over seeds, one line per cell and method."""
    lines = [
        "| | | seeds | ARI | K | true K | shared | true | ratio | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    keys = list(dict.fromkeys((row["study"], row["cell"], row["method"]) for row in rows))
    for key in keys:
        own = [row for row in rows if (row["study"], row["cell"], row["method"]) == key]

        def mean(name: str, how: Callable[[list[float]], float], digits: int, own: Rows = own) -> str:
            found = [float(row[name]) for row in own if row.get(name) is not None]  # type: ignore[arg-type]
            return f"{how(found):.{digits}f}" if found else ""

        average = lambda x: float(np.mean(x))  # noqa: E731
        cells = [mean("ari", average, 3), mean("K", average, 1), mean("true_K", average, 1)]
        cells += [mean("shared", average, 1), mean("true_shared", average, 1)]
        cells += [mean("ratio", lambda x: float(np.median(x)), 2), mean("cpu", average, 2)]
        method = str(key[2]).replace("|", "\\|")
        lines.append(f"| {key[0]} {key[1]} | {method} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def differences(rows: Rows) -> str:
    """The bare call's adjusted Rand index less that of every other method, on the same draws; of ten draws or so."""
    lines = ["", "| | ARI of the bare call less that of | difference |", "|---|---|---|"]
    for cell in dict.fromkeys(str(row["cell"]) for row in rows):
        found: dict[str, dict[object, float]] = {}
        for row in rows:
            if row["cell"] == cell and row.get("ari") is not None:
                found.setdefault(str(row["method"]), {})[row["seed"]] = float(row["ari"])  # type: ignore[arg-type]
        if not found or len(next(iter(found.values()))) < 2:
            return ""
        first, *others = found
        for other in others:
            seeds = sorted(found[first])  # type: ignore[type-var]
            by = paired([found[first][s] for s in seeds], [found[other][s] for s in seeds])
            lines.append(f"| {cell} | {other.replace('|', chr(92) + '|')} | {by} |")
    return "\n".join(lines) + "\n"
