"""Tables, claims and key figures of the study."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from contenders import AUTHORS, ERRORS, KMEANS, OURS, PAPER, THOROUGH
from measures import SHOWN_BY_SUPPORT, SUPPORTS
from repeats import KINDS, Repeats, Setting, standard_error

from study import Claim, Results, Summary, Table

MEASURES = {"hausdorff": "Hausdorff", "ari": "ARI", "error in K": "error in K"}
COMPARED = {"hausdorff": "Hausdorff", "ari": "ARI", "K off": "error in K"}
FORMATS = {"hausdorff": "{:.2f}", "ari": "{:.4f}", "error in K": "{:+.1f}", "K off": "{:.1%}"}
HYPERPARAMETERS = {"mu0": "mu0", "sigma": "sigma", "sigma0": "sigma0", "K off": "K"}
HARDEST = Setting("true", 100, 10.0)
RESOLUTION = 1e-4  # digits that are kept; atoms of one and the same matching differ by as much
LARGEST_K_ERROR, LEAST_ARI = 0.05, 0.985  # what is asked for in the hardest setting
AUTHORS_OWN = "The authors' program finds 184 atoms for 49."


def summary(results: Results) -> Summary:
    """What the repeats say."""
    repeats = Repeats(results)
    return Summary(tables(repeats), claims(repeats), keys(repeats))


def tables(repeats: Repeats) -> list[Table]:
    """The figures as numbers, and what they do not show."""
    over_sigma = [over(repeats, kind, "sigma", repeats.settings(kind, J=20)) for kind in KINDS]
    over_sites = [over(repeats, kind, "J", repeats.settings(kind, sigma=1.0)) for kind in KINDS]
    hardest = over(repeats, "true", "J", repeats.settings("true", J=100, sigma=10.0))
    found = [*over_sigma, *over_sites, hardest, by_support(repeats), hyperparameters(repeats), differences(repeats)]
    return [table for table in found if table.rows]


def over(repeats: Repeats, kind: str, axis: str, settings: list[Setting]) -> Table:
    """Every measure of every contender, setting by setting."""
    names = repeats.contenders(kind)
    rows = [
        [f"{getattr(s, axis):g}", title, *(shown(repeats.values(s, name, m), FORMATS[m]) for name in names)]
        for s in settings
        for m, title in MEASURES.items()
    ]
    hard = {s.J for s in settings} == {100} and {s.sigma for s in settings} == {10.0}
    where = "J = 100, sigma = 10" if hard else "over sigma, J = 20" if axis == "sigma" else "over J, sigma = 1"
    note = "Mean ± standard deviation over repeats. "
    if kind == "true" and settings:
        told = ", ".join(f"{getattr(s, axis):g}: {repeats.told(s, 'ari, popular').mean():.4f}" for s in settings)
        note += f"ARI of whoever is told the true atoms and how many sites hold each, by {axis}: {told}. "
    if hard:
        cpu = "; ".join(f"{name} {repeats.values(settings[0], name, 'seconds').mean():.2f}" for name in names)
        note += f"{AUTHORS_OWN} CPU seconds: {cpu}."
    return Table(f"From {KINDS[kind]}: {where}", [axis, "measure", *names], rows, note.strip())


def by_support(repeats: Repeats) -> Table:
    """How far estimates are, by how many sites hold the atom."""
    classes = ["1 site", *(f"{a} to {b - 1}" for a, b in pairwise(SUPPORTS[1:])), f">= {SUPPORTS[-1]}"]
    settings = [s for s in repeats.by_setting if (s.J, s.sigma) in SHOWN_BY_SUPPORT]
    rows = [
        [str(s), name, *(shown(x, "{:.2f}") for x in repeats.off(s, name)[:, None])]
        for s in sorted(settings)
        for name in repeats.contenders(s.kind)
    ]
    note = (
        "Root mean square distance of a true atom from the nearest fused one, per coordinate, in units of sigma. "
        "The mean of m values is 1/sqrt(m) off: 1 at one site, .32 at ten. Hausdorff is the worst atom: one held by a "
        "single site, wherever there is one."
    )
    return Table("Error by support", ["setting", "method", *classes], rows, note)


def hyperparameters(repeats: Repeats) -> Table:
    """Relative errors over sigma."""
    rows: list[list[str]] = []
    for kind in KINDS:
        names = [n for n in repeats.contenders(kind) if n.startswith(("SPAHM", "ours"))]
        for s in repeats.settings(kind, J=20):
            for name in names:
                cells = [shown(repeats.values(s, name, m), "{:.3f}") for m in HYPERPARAMETERS]
                rows.append([KINDS[kind], f"{s.sigma:g}", name, *cells])
            if kind == "true":
                floor = [shown(repeats.told(s, m), "{:.3f}") for m in ("mu0", "sigma0")]
                rows.append([KINDS[kind], f"{s.sigma:g}", "true atoms", floor[0], "", floor[1], ""])
    note = (
        "Absolute error over true value; mean ± standard deviation over repeats, J = 20. 'True atoms': mu0 and sigma0 "
        "read off the true atoms themselves, as near as anyone can come."
    )
    return Table("Hyperparameters", ["local atoms", "sigma", "method", *HYPERPARAMETERS.values()], rows, note)


def differences(repeats: Repeats) -> Table:
    """Ours minus the authors' form, repeat by repeat."""
    rows = [
        [str(s), name, *(str(repeats.less(s, name, m)) for m in COMPARED)]
        for s in sorted(repeats.by_setting)
        for name in repeats.contenders(s.kind)
        if name.startswith("ours")
    ]
    note = "Positive is worse. Mean of the paired difference and its 95 % interval; error in K relative to the true K."
    title = "By how much ours is worse than the authors' form"
    return Table(title, ["setting", "method", *COMPARED.values()], rows, note)


def claims(repeats: Repeats) -> list[Claim]:
    """Never worse than the authors' form; the hardest setting."""
    found = [not_worse(repeats, name) for name in (THOROUGH, OURS, ERRORS) if name in repeats.everyone]
    if HARDEST not in repeats.by_setting:
        return found
    for name in (THOROUGH, OURS):
        K, true = (repeats.values(HARDEST, name, "error in K") + repeats.true_K(HARDEST)), repeats.true_K(HARDEST)
        mean_off = abs(K.mean() / true.mean() - 1)
        single = repeats.values(HARDEST, name, "K off")
        ari = repeats.values(HARDEST, name, "ari")
        theirs = repeats.values(HARDEST, AUTHORS, "error in K") + true
        found += [
            Claim(
                f"J = 100, sigma = 10: K of '{name}' within 5 % of the truth.",
                f"{K.mean():.1f} for {true.mean():.1f} ({mean_off:.1%}; single repeats off by {single.mean():.1%} on "
                f"average, {single.max():.1%} at most); authors' form {theirs.mean():.1f}.",
                bool(np.abs(K - true).sum() <= LARGEST_K_ERROR * true.sum()),
            ),
            Claim(
                f"J = 100, sigma = 10: ARI of '{name}' at least {LEAST_ARI}.",
                f"{ari.mean():.4f} ± {standard_error(ari):.4f} (standard error); told the true atoms "
                f"{repeats.told(HARDEST, 'ari').mean():.4f}, and how many sites hold each "
                f"{repeats.told(HARDEST, 'ari, popular').mean():.4f}; k-means told L "
                f"{repeats.values(HARDEST, KMEANS, 'ari').mean():.4f}, as printed "
                f"{repeats.values(HARDEST, PAPER, 'ari').mean():.4f}.",
                bool(ari.mean() >= LEAST_ARI),
            ),
        ]
    return found


def not_worse(repeats: Repeats, name: str) -> Claim:
    """Whether a contender is nowhere worse than the authors' form by more than the standard error."""
    settings = [s for s in sorted(repeats.by_setting) if name in repeats.contenders(s.kind)]
    compared = [(s, m, *repeats.worse(s, name, m)) for s in settings for m in COMPARED]
    beyond = [(s, m, d, e) for s, m, d, e in compared if d > e]
    tied = [row for row in beyond if row[2] <= RESOLUTION * abs(repeats.values(row[0], AUTHORS, row[1]).mean())]
    worse = [row for row in beyond if row not in tied]
    better = sum(d < -e for _, _, d, e in compared)
    found = f"{len(compared)} comparisons, {better} better by more than that, {len(worse)} worse"
    for word, rows in (("worse", worse), ("ties", tied)):
        listed = "; ".join(f"{COMPARED[m]} at {s} by {d:.2g} ± {e:.1g}" for s, m, d, e in rows)
        found += f" ({word}: {listed})" if rows else ""
    return Claim(
        f"'{name}' is at no sigma or J worse than the authors' form (Hausdorff, ARI, error in K) by more than the "
        "standard error of the paired difference; less than a ten-thousandth of the value is a tie.",
        f"{found}.",
        not worse,
    )


def keys(repeats: Repeats) -> dict[str, tuple[float, float]]:
    """The figures to compare with those expected."""
    found: dict[str, tuple[float, float]] = {}
    for s in sorted(repeats.by_setting):
        for name in (AUTHORS, OURS, THOROUGH):
            for measure, tolerance in (("hausdorff", 1.0), ("ari", 0.01), ("error in K", 1.0)):
                mean = float(np.mean(repeats.values(s, name, measure)))
                found[f"{s}: {name}, {MEASURES[measure]}"] = (mean, tolerance)
    return found


def shown(values: np.ndarray, form: str) -> str:
    """Mean and deviation; nothing where there are no values."""
    if np.isnan(values).all():
        return ""
    mean = form.format(values.mean())
    return f"{mean} ± {form.replace('+', '').format(values.std(ddof=1))}" if len(values) > 1 else mean
