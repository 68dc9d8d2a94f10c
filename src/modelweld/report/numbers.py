"""A Fusion as plain numbers and words, ready for JSON: all that the page shows, and nothing that is not in here.

How a run went and what it learned, with the paper's symbols.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np
import scipy

import modelweld
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, arrays_of, group_of_values
from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.families.capabilities import name_hyperparameters
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.inputs.notebook import decimals_of
from modelweld.report import coordinates, text, verdicts
from modelweld.report.groups import Small, display_keys, find_small, list_groups, rank_features
from modelweld.report.pictures import draw_picture
from modelweld.results.diagnostics.sites import TOO_FEW
from modelweld.results.posterior.confidence import SURE

MOST_ROWS, MOST_SITES, MOST_VALUES = 100_000, 5_000, 60_000
"""Local parameters and sites that are listed one by one (a megabyte and a half); beyond, sites are picked evenly.
Values of atoms that are listed (half a megabyte, and as much again for deviations), in those columns in which they
differ most; members' values are listed if they are not more."""


def numbers_of(fusion: modelweld.Fusion, *, draws: bool = True, allow_small: bool = False) -> text.Content:
    """All that a report shows, as dicts, lists, numbers and words.

    Parameters
    ----------
    fusion : Fusion
        Any fusion, also a baseline's, which has no scores.
    draws : bool
        Whether matchings are drawn for confidences and intervals, which takes seconds, and is compiled at its first use
        on a machine. Else confidences take all other matches to be right.
    allow_small : bool
        Whether to show numbers of points below five (else "< 5"), and what groups of so few are like (else None).

    Returns
    -------
    dict
        Ready for ``json.dumps``. Values that do not exist are None. What was left out because of size is in ``notes``.

    Notes
    -----
    `verdict` says whether fusing is worth it (None: not known), in all and by listed site. Of every one of
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
        raise InputError("nothing was matched (classes are aligned by name): fusion.parameters() has them.")
    notes: list[str] = []
    sizes = sum(np.diff(m.offsets) for m in fusion.matchings.values())
    shown = _choose_sites(np.asarray(sizes), notes)
    verdict = verdicts.judge_gain(fusion, shown, int(np.sum(sizes)), notes)
    worth = verdict["worth"] if verdict else None
    return {
        "format": 1,  # version of this layout
        "versions": {
            "modelweld": modelweld.__version__,
            "numpy": np.__version__,
            "scipy": version("scipy"),
            "python": platform.python_version(),
        },
        "kind": fusion._fit.first_model.kind,
        "J": len(fusion.sites),
        "sites": [fusion.sites[j] for j in shown],
        "converged": fusion.diagnosis.converged,
        "objective": text.exact(fusion.objective),
        "sure_from": SURE,
        "settings": fusion.diagnosis.settings,
        "verdict": verdict,
        "picture": draw_picture(fusion, notes, allow_small),
        "sets": [
            _set(fusion, name, shown, notes, draws, worth, find_small(fusion, name, allow_small))
            for name in fusion.matchings
        ],
        "notes": list(dict.fromkeys(notes)),
    }


def _choose_sites(sizes: Index, notes: list[str]) -> Index:
    """Which sites are listed: all, or as many as there is room for, evenly spaced."""
    J, N = len(sizes), int(sizes.sum())
    most = min(J, MOST_SITES, max(1, int(J * MOST_ROWS / max(N, 1))))
    if most < J:
        notes.append(f"{most:,} of the {J:,} sites are listed and drawn, evenly picked; totals are of all.")
    return np.unique(np.linspace(0, J - 1, most).round().astype(np.int64))


def _set(
    fusion: modelweld.Fusion, name: str, shown: Index, notes: list[str], draws: bool, worth: bool | None, small: Small
) -> text.Content:
    """One set: its matching, values, members, order, map, hyperparameters, diagnostics."""
    matching = fusion.matchings[name]
    labels, counts, K = matching.stacked_labels, matching.counts, matching.K
    values = coordinates.gather_values(fusion, name)
    distance, spread = coordinates.deviations(values, labels, counts)
    stated = verdicts.state_confidence(fusion, name, notes, draws=draws)
    sure = None if stated is None else np.concatenate(stated)
    order = np.flatnonzero(np.isin(group_of_values(matching.offsets), shown))
    listed = _columns(values)
    fitted = np.flatnonzero(labels < K) if K else slice(None)
    # what was sent: fused values lean together and differ less; column by column, since there may be millions
    decimals = [decimals_of(values.local[fitted, d], spread[:, d]) for d in listed]
    digits = text.digits_needed(values.atoms[:, listed], decimals)
    timed = coordinates.tell_lives(fusion, name, values, _rank_columns(values), shown)
    site_order, atom_order = coordinates.order_by_likeness(matching.presence[shown], K)
    if small.rows.any() or small.atoms.any():
        notes.append(f"{text.FEW}: {text.FEW_SAID}.")
    if timed is not None:
        site_order, atom_order = coordinates.order_by_time(timed, len(counts))
        nothing: text.Content = {key: [] for key in ("times", "values", "low", "high")}
        timed["paths"] = text.hide(timed["paths"], small.atoms[:K], nothing)
    diagnostics = verdicts.diagnose_sites(fusion, name, shown, notes)
    words = text.list_words(fusion, name)
    alerts = verdicts.rank_alerts(matching.reasons, diagnostics, [fusion.sites[j] for j in shown], fusion.sites)
    return {
        "name": name,
        "K": K,
        "N": len(labels),
        "shared": matching.shared,
        "sizes": np.diff(matching.offsets)[shown].tolist(),
        "labels": labels[order].tolist(),
        "counts": counts.tolist(),
        "columns": [values.columns[d] for d in listed],
        "decimals": decimals,
        "best": _best_pair(fusion, name, values, listed),
        "dimensions": len(values.columns),
        "atoms": text.hide(text.short(values.atoms[:, listed], digits), small.atoms),
        "spread": text.hide(text.short(spread[:, listed]), small.atoms),
        "members": _members(values, order, listed, notes, digits, small),
        "distance": text.short(distance[order], 3),
        "confidence": None if sure is None else text.short(sure[order], 4),
        "confidence_meaning": None if stated is None else stated.meaning,
        "certainty": verdicts.judge_matches(fusion, name, stated, worth),
        "doubtful_number": None if sure is None else int((sure[labels < K] < SURE).sum()),
        "doubtful": verdicts.list_doubtful(fusion, name, stated, distance),
        "order": {"sites": site_order.tolist(), "atoms": atom_order.tolist()},
        "map": _map(values, K, order, small),
        "roots": values.shares,
        **verdicts.list_aside(fusion, name, matching),
        "diagnostics": diagnostics,
        "judged": diagnostics is not None and not any(TOO_FEW in note for note in notes),
        "fit": describe_fit(matching, text.NAMED),
        "words": words and [[] if few else own for own, few in zip(words, small.atoms.tolist(), strict=True)],
        "groups": list_groups(fusion, name, stated, order, min(text.NAMED, max(1, MOST_VALUES // max(K, 1))), small),
        "time": timed,
        "alerts": alerts[: text.NOTED],
        "warned": list(dict.fromkeys(site for alert in alerts for site in alert["sites"])),
    }


def _map(values: coordinates.Values, K: int, order: Index, small: Small) -> text.Content:
    """Listed members and all atoms on two principal axes."""
    local, atoms, explained = coordinates.plane(values, values.labels, K)
    return {
        "explained": text.short(explained, 3),
        "members": text.hide(text.short(local[order], 4), small.rows[order]),
        "atoms": text.hide(text.short(atoms, 4), small.atoms),
    }


def _members(
    values: coordinates.Values, order: Index, listed: Index, notes: list[str], digits: int, small: Small
) -> text.Numbers:
    """Members' own values in the listed columns, if they are not too many; what is left out is noted."""
    found = None
    if len(order) * len(listed) <= MOST_VALUES:
        chosen = np.ix_(order, listed)
        known = np.where(values.seen[chosen], values.local[chosen], np.nan)
        found = text.hide(text.short(known, digits), small.rows[order])
    else:
        notes.append(f"Beyond {MOST_VALUES:,} numbers the members' own values are left out; atoms have theirs.")
    if len(listed) < len(values.columns):
        notes.append(f"Of {len(values.columns):,} columns those {len(listed)} are listed in which atoms differ most.")
    return found


def _columns(values: coordinates.Values) -> Index:
    """The columns that are listed."""
    most = min(text.NAMED, max(1, MOST_VALUES // len(values.atoms)))
    if len(values.columns) <= most:
        return np.arange(len(values.columns))
    return np.sort(_rank_columns(values)[:most])


def _rank_columns(values: coordinates.Values) -> Index:
    """Columns, those first in which atoms differ most compared with how much their members do."""
    return rank_features(values.atoms, coordinates.variances_about_atoms(values))


def _best_pair(fusion: modelweld.Fusion, name: str, values: coordinates.Values, listed: Index) -> list[int]:
    """The two listed columns in which atoms differ most; none where members are not known by single columns."""
    if len(listed) < 2 or values.shares or not display_keys(fusion, name):
        return []
    place = {int(d): i for i, d in enumerate(listed)}
    return [place[d] for d in _rank_columns(values).tolist() if d in place][:2]


PAPER = {
    "noise": ("σ", "deviation from site to site", True),
    "spread": ("σ₀", "deviation from group to group", True),
    "mean": ("μ₀", "mean of all groups", False),
    "memory": ("", "time after which a group is correlated with where it was by 1 / e (infinite: stands still)", False),
}
"""Hyperparameters of a Gaussian: the paper's symbol, in words, and whether it is the root of ours (a variance)."""


def describe_fit(matching: Matching, most_columns: int) -> text.Content:
    """The run and its hyperparameters; of those by column, the first ones."""
    many = len(matching.families) > 1
    learned = [
        row
        for key, family in matching.families.items()
        for row in _of_family(
            family, ", ".join(arrays_of(key)) if many or not isinstance(key, str) else "", most_columns
        )
    ]
    learned += [
        {"symbol": x, "name": meaning, "of": "", "value": text.exact(v)} for x, meaning, v in _of_prior(matching)
    ]
    if matching.delta > 0:
        meaning = "share of fragments beyond a site's first of an atom"
        learned.append({"symbol": "δ", "name": meaning, "of": "", "value": text.exact(matching.delta)})
    return {
        "families": [
            {"arrays": list(arrays_of(key)), "family": type(family).__name__, "shape": _shape_of(family)}
            for key, family in matching.families.items()
        ],
        "prior": None if matching.prior is None else type(matching.prior).__name__,
        "engine": matching.engine,
        "sweeps": matching.sweeps,
        "changes": list(matching.changes),
        "converged": matching.converged,
        "objective": text.exact(matching.objective),
        "history": [text.exact(x) for x in matching.history],
        "learned": learned,
    }


def _of_family(family: Family, of: str, most_columns: int) -> Iterator[text.Content]:
    """Hyperparameters of one family, as deviations where the paper has these."""
    for name, value in name_hyperparameters(family).items():
        if value is None:
            continue
        x = np.asarray(value, dtype=np.float64)
        symbol, meaning = "", f"{name} ({type(family).__name__})"
        if isinstance(family, Gaussian) and name in PAPER:
            symbol, meaning, root = PAPER[name]
            x = np.sqrt(x) if root else x
        yield {"symbol": symbol, "name": meaning, "of": of, "value": _shorten(x, most_columns)}


def _of_prior(matching: Matching) -> list[tuple[str, str, float]]:
    """Parameters of the prior, by the paper's symbols."""
    prior = matching.prior
    if isinstance(prior, BetaBernoulli):
        return [
            ("γ₀", "atoms a site is expected to hold", prior.gamma0),
            ("α", "concentration: large if sites share little", prior.alpha),
        ]
    if isinstance(prior, BirthDeath):
        return [
            ("", "groups that live at a time, expected", prior.alive),
            ("", "probability that a site holds a group which lives", prior.held),
            ("", "deaths of a group per unit of time (dates: per day)", prior.hazard),
        ]
    if isinstance(prior, Spectrum):
        # sum over m of m / J C(J, m) exp R(m) = c B(a + 1, b), which is the paper's c / b = gamma0 where a is 0
        mass = np.exp(np.log(prior.c) + scipy.special.betaln(prior.a + 1, prior.b))
        return [
            ("γ₀", "atoms a site is expected to hold", float(mass)),
            ("α", "concentration (b of the spectrum of supports)", prior.b),
            ("a", "first shape of the spectrum of supports; 0 in the paper", prior.a),
        ]
    return []


def _shorten(x: Array, most: int) -> text.Number | list[text.Number]:
    """One number if all are equal, else a list (cut, if long, to what a table can hold)."""
    flat = x.ravel()
    if flat.size and (flat == flat[0]).all():
        return text.exact(flat[0])
    return [text.round_digits(v) for v in (flat if x.ndim < 2 else x.diagonal())[:most]]


def _shape_of(family: Family) -> str | None:
    """What a Gaussian's noise is like; other families mean numbers by `shape`."""
    shape = getattr(family, "shape", None)
    return shape if isinstance(shape, str) else None
