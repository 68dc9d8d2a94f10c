"""A Fusion as plain numbers and words, ready for JSON: all that the page shows, and nothing that is not in here."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

import modelweld
from modelweld.core.values import Index, group_of_values
from modelweld.errors import InputError
from modelweld.inputs.notebook import decimals_of
from modelweld.report.coordinates import (
    Values,
    deviations,
    gather_values,
    order_by_likeness,
    order_by_time,
    plane,
    tell_lives,
    variances_about_atoms,
)
from modelweld.report.glossary import describe_fit
from modelweld.report.groups import list_groups, rank_features, shown_keys
from modelweld.report.pictures import draw_picture
from modelweld.report.text import NAMED, NOTED, Content, Numbers, carried_digits, exact, list_words, short
from modelweld.report.verdicts import (
    diagnose_sites,
    judge_gain,
    judge_matches,
    list_aside,
    list_doubtful,
    rank_alerts,
    state_confidence,
)
from modelweld.results.posterior.confidence import SURE

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

FORMAT = 1
"""Version of the layout of these numbers."""

MOST_ROWS, MOST_SITES = 100_000, 5_000
"""Local parameters and sites that are listed one by one (a megabyte and a half); beyond, sites are picked evenly."""

MOST_VALUES = 60_000
"""Values of atoms that are listed (half a megabyte, and as much again for deviations), in those columns in which they
differ most; members' values are listed if they are not more."""


def numbers_of(fusion: Fusion, *, draws: bool = True) -> Content:
    """All that a report shows, as dicts, lists, numbers and words.

    Parameters
    ----------
    fusion : Fusion
        Any fusion, also a baseline's, which has no scores.
    draws : bool
        Whether matchings are drawn for confidences and intervals, which takes seconds, and is compiled at its first use
        on a machine. Else confidences take all other matches to be right.

    Returns
    -------
    dict
        Ready for ``json.dumps``. Values that do not exist are None. What was left out because of size is in ``notes``.

    Notes
    -----
    `verdict` says whether fusing is worth it (None: that cannot be said), in all and by listed site. Of every one of
    the `sets`:

    - `K` fused and `N` local ones, `labels`, `sizes` and `counts`; `atoms`, `spread` and `members` in the listed
      `columns`, with so many `decimals`; `distance` and `confidence` of every match.
    - `certainty`: how many groups there are, with an interval that holds their number with probability `level`, and
      how sure matches are; `doubtful`: those that are not, with the most probable other atom (None: a new one).
    - `excluded` and `set_aside_number`: what is not counted, and why; `fragments`: what a site holds in fragments.
    - `diagnostics`: how each site gets on with the others; `alerts`: what to look at first, with the sites it names;
      `warned`: all of these, also one that is not listed.
    - `fit`: families, prior, history, and hyperparameters by the paper's symbol; `order`: sites and atoms so that those
      which go together are neighbours; `map`: all on two principal axes, and the shares of variance these explain.
    - `groups`: the table of groups (`GroupTable`), cut to the features in which they differ most. `low` and `high` are
      ends of intervals at `level`, `noise` and `spread` deviations from site to site and from group to group, `members`
      points behind the local parameters that are listed, `columns` how many features there are; `held` has of every
      group in how many sites it is expected to be, and the ends of an interval of that number.
    - `time`: when groups live and where they go. Times are numbers (dates: days since 1970), and in words; `moments`
      and `names` are those of the listed sites, `alive` is at the `newest` time, `paths` are in `columns`.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> found = numbers_of(fusion)
    >>> found["sets"][0]["K"], found["sets"][0]["labels"]
    (3, [0, 1, 1, 0, 2])
    """
    if not fusion.matchings:
        raise InputError(
            "nothing was matched in this fusion (classes are aligned by name), so there is nothing to report: "
            "fusion.fused() and fusion.model() are what there is."
        )
    notes: list[str] = []
    sizes = sum(np.diff(m.offsets) for m in fusion.matchings.values())
    shown = _choose_sites(np.asarray(sizes), notes)
    verdict = judge_gain(fusion, shown, int(np.sum(sizes)), notes)
    return {
        "format": FORMAT,
        "versions": {
            "modelweld": modelweld.__version__,
            "numpy": np.__version__,
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
        "kind": fusion.first_model.kind,
        "J": len(fusion.sites),
        "sites": [fusion.sites[j] for j in shown],
        "converged": fusion.converged,
        "objective": exact(fusion.objective),
        "sure_from": SURE,
        "settings": fusion.settings,
        "verdict": verdict,
        "picture": draw_picture(fusion, notes),
        "sets": [_set(fusion, name, shown, notes, draws) for name in fusion.matchings],
        "notes": list(dict.fromkeys(notes)),
    }


def _choose_sites(sizes: Index, notes: list[str]) -> Index:
    """Which sites are listed: all, or as many as there is room for, evenly spaced."""
    J, N = len(sizes), int(sizes.sum())
    most = min(J, MOST_SITES, max(1, int(J * MOST_ROWS / max(N, 1))))
    if most < J:
        notes.append(f"{most:,} of the {J:,} sites are listed and drawn, evenly picked; totals are of all.")
    return np.unique(np.linspace(0, J - 1, most).round().astype(np.int64))


def _set(fusion: Fusion, name: str, shown: Index, notes: list[str], draws: bool) -> Content:
    """One set: its matching, values, members, order, map, hyperparameters, diagnostics."""
    matching = fusion.matchings[name]
    labels, counts, K = matching.stacked_labels, matching.counts, matching.K
    values = gather_values(fusion, name)
    distance, spread = deviations(values, labels, counts)
    stated = state_confidence(fusion, name, notes, draws=draws)
    sure = None if stated is None else np.concatenate(stated)
    order = np.flatnonzero(np.isin(group_of_values(matching.offsets), shown))
    listed = _columns(values)
    fitted = np.flatnonzero(labels < K) if K else slice(None)
    # what was sent: fused values lean together and differ less; column by column, since there may be millions
    decimals = [decimals_of(values.local[fitted, d], spread[:, d]) for d in listed]
    digits = carried_digits(values.atoms[:, listed], decimals)
    timed = tell_lives(fusion, name, values, _ranked(values), shown)
    if timed is None:
        site_order, atom_order = order_by_likeness(matching.presence[shown], K)
    else:
        site_order, atom_order = order_by_time(timed, len(counts))
    diagnostics = diagnose_sites(fusion, name, shown, notes)
    alerts = rank_alerts(matching.reasons, diagnostics, [fusion.sites[j] for j in shown], fusion.sites)
    return {
        "name": name,
        "K": K,
        "N": len(labels),
        "shared": int((counts[:K] > 1).sum()),
        "sizes": np.diff(matching.offsets)[shown].tolist(),
        "labels": labels[order].tolist(),
        "counts": counts.tolist(),
        "columns": [values.columns[d] for d in listed],
        "decimals": decimals,
        "best": _best_pair(fusion, name, values, listed),
        "dimensions": len(values.columns),
        "atoms": short(values.atoms[:, listed], digits),
        "spread": short(spread[:, listed]),
        "members": _members(values, order, listed, notes, digits),
        "distance": short(distance[order], 3),
        "confidence": None if sure is None else short(sure[order], 4),
        "confidence_meaning": None if stated is None else stated.meaning,
        "certainty": judge_matches(fusion, name, stated),
        "doubtful_number": None if sure is None else int((sure[labels < K] < SURE).sum()),
        "doubtful": list_doubtful(fusion, name, stated, distance),
        "order": {"sites": site_order.tolist(), "atoms": atom_order.tolist()},
        "map": _map(values, K, order),
        "roots": values.shares,
        **list_aside(fusion, name, matching),
        "diagnostics": diagnostics,
        "fit": describe_fit(matching, NAMED),
        "words": list_words(fusion, name),
        "groups": list_groups(fusion, name, stated, order, min(NAMED, max(1, MOST_VALUES // max(K, 1)))),
        "time": timed,
        "alerts": alerts[:NOTED],
        "warned": list(dict.fromkeys(site for alert in alerts for site in alert["sites"])),
    }


def _map(values: Values, K: int, order: Index) -> Content:
    """Listed members and all atoms on two principal axes."""
    local, atoms, explained = plane(values, values.labels, K)
    return {"explained": short(explained, 3), "members": short(local[order], 4), "atoms": short(atoms, 4)}


def _members(values: Values, order: Index, listed: Index, notes: list[str], digits: int) -> Numbers:
    """Members' own values in the listed columns, if they are not too many; what is left out is noted."""
    found = None
    if len(order) * len(listed) <= MOST_VALUES:
        chosen = np.ix_(order, listed)
        found = short(np.where(values.seen[chosen], values.local[chosen], np.nan), digits)
    else:
        notes.append(f"Beyond {MOST_VALUES:,} numbers the members' own values are left out; atoms have theirs.")
    if len(listed) < len(values.columns):
        notes.append(f"Of {len(values.columns):,} columns those {len(listed)} are listed in which atoms differ most.")
    return found


def _columns(values: Values) -> Index:
    """The columns that are listed."""
    most = min(NAMED, max(1, MOST_VALUES // len(values.atoms)))
    if len(values.columns) <= most:
        return np.arange(len(values.columns))
    return np.sort(_ranked(values)[:most])


def _ranked(values: Values) -> Index:
    """Columns, those first in which atoms differ most beside how much their members do."""
    return rank_features(values.atoms, variances_about_atoms(values))


def _best_pair(fusion: Fusion, name: str, values: Values, listed: Index) -> list[int]:
    """The two listed columns in which atoms differ most; none where members are not known by single columns."""
    if len(listed) < 2 or values.shares or not shown_keys(fusion, name):
        return []
    place = {int(d): i for i, d in enumerate(listed)}
    return [place[d] for d in _ranked(values).tolist() if d in place][:2]
