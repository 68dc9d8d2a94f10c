"""Tables and claims of the study."""

from __future__ import annotations

import numpy as np
from contenders import AUTHORS, KMEANS, OURS, PAPER
from repeats import KINDS, Repeats, Setting, standard_error

from study import Claim, Results, Summary, Table

MEASURES = {"hausdorff": "Hausdorff", "ari": "ARI", "error in K": "error in K"}
FORMATS = {"hausdorff": "{:.2f}", "ari": "{:.4f}", "error in K": "{:+.1f}", "K off": "{:.1%}"}
HYPERPARAMETERS = {"mu0": "mu0", "sigma": "sigma", "sigma0": "sigma0", "K off": "K"}
HARDEST = Setting("true", 100, 10.0)
LARGEST_K_ERROR, LEAST_ARI = 0.05, 0.985  # what is asked for in the hardest setting


def summary(results: Results) -> Summary:
    """What the repeats say."""
    repeats = Repeats(results)
    return Summary(tables(repeats), claims(repeats))


def tables(repeats: Repeats) -> list[Table]:
    """The figures as numbers, and what they do not show."""
    over_sigma = [over(repeats, kind, "sigma", repeats.settings(kind, J=20)) for kind in KINDS]
    over_sites = [over(repeats, kind, "J", repeats.settings(kind, sigma=1.0)) for kind in KINDS]
    hardest = over(repeats, "true", "J", repeats.settings("true", J=100, sigma=10.0))
    found = [*over_sigma, *over_sites, hardest, hyperparameters(repeats)]
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
        note += f"The authors' program finds 184 atoms for 49. CPU seconds: {cpu}."
    return Table(f"From {KINDS[kind]}: {where}", [axis, "measure", *names], rows, note.strip())


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


def claims(repeats: Repeats) -> list[Claim]:
    """The hardest setting."""
    if HARDEST not in repeats.by_setting:
        return []
    true, error = repeats.true_K(HARDEST), repeats.values(HARDEST, OURS, "error in K")
    single, K, n = repeats.values(HARDEST, OURS, "K off"), error + true, f"{len(true)} draws"
    ari = repeats.values(HARDEST, OURS, "ari")
    told = {m: repeats.told(HARDEST, m).mean() for m in ("ari", "ari, popular")}
    others = {name: repeats.values(HARDEST, name, "ari").mean() for name in (KMEANS, PAPER)}
    theirs = (repeats.values(HARDEST, AUTHORS, "error in K") + true).mean()
    return [
        Claim(
            f"J = 100, sigma = 10: K of '{OURS}' within 5 % of the truth.",
            f"{K.mean():.1f} for {true.mean():.1f} ({abs(K.mean() / true.mean() - 1):.1%}; single repeats off by "
            f"{single.mean():.1%} on average, {single.max():.1%} at most); authors' form {theirs:.1f}.",
            bool(np.abs(error).sum() <= LARGEST_K_ERROR * true.sum()),
            n,
        ),
        Claim(
            f"J = 100, sigma = 10: ARI of '{OURS}' at least {LEAST_ARI}.",
            f"{ari.mean():.4f} ± {standard_error(ari):.4f} (standard error); told the true atoms {told['ari']:.4f}, "
            f"and how many sites hold each {told['ari, popular']:.4f}; k-means told L {others[KMEANS]:.4f}, as printed "
            f"{others[PAPER]:.4f}.",
            bool(ari.mean() >= LEAST_ARI),
            n,
        ),
    ]


def shown(values: np.ndarray, form: str) -> str:
    """Mean and deviation; nothing where there are no values."""
    if np.isnan(values).all():
        return ""
    mean = form.format(values.mean())
    return f"{mean} ± {form.replace('+', '').format(values.std(ddof=1))}" if len(values) > 1 else mean
