"""What do words cost that some sites do not know? Topics that are hard to tell apart, fused as `Counts`.

python experiments/families/lacking.py            # ten draws of five settings, three shares each; some CPU minutes
python experiments/families/lacking.py --smoke    # one draw of the smallest, nothing written

Fifteen topics in five clusters of three that differ in a part of their words, word probabilities about 1 / rank;
ten sites hold each topic with probability .7 and see it in so many words. A site lacks a share of the words, rarer ones
more often, and sends proportions among those it knows. Seeds redraw topics, sites and what they lack.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import warnings

import numpy as np

from modelweld import LocalModel, fuse
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.counts import Counts
from paired import paired
from provenance import keep

HERE = Path(__file__).parent
SETTINGS = ((50, 20, 100), (50, 20, 1000), (200, 50, 100), (200, 50, 1000), (1000, 100, 300))
"""Words, pseudo-counts of the topics, observations of a topic at a site."""

LACKING = (0.0, 0.05, 0.3)
CLUSTERS, TOPICS, SITES, HELD = 5, 3, 10, 0.7
OWN = 0.2
"""Share of a topic that is not its cluster's: with it some topics are mistaken even if no word is lacking."""

FIRST_SEED, DRAWS = 700, 10


def ari(words: int, pseudo: int, observed: int, lacking: float, seed: int) -> float:
    """Of the bare call with `Counts`, on one draw."""
    rng = np.random.default_rng([seed, words, observed])
    base = 1 / np.arange(1.0, words + 1)
    base *= pseudo / base.sum()
    centres = np.repeat(rng.dirichlet(base, CLUSTERS), TOPICS, axis=0)
    topics = (1 - OWN) * centres + OWN * rng.dirichlet(base, CLUSTERS * TOPICS)
    rarer = np.arange(1.0, words + 1)
    absent = np.minimum(lacking * rarer / rarer.mean(), 1.0)
    models, truth = [], []
    for _ in range(SITES):
        known = rng.random(words) >= absent
        held = np.flatnonzero(rng.random(len(topics)) < HELD)
        seen = np.array([rng.multinomial(observed, t * known / t[known].sum()) for t in topics[held]], dtype=float)
        weight = np.repeat(known[None].astype(float), len(held), axis=0)
        share = seen / seen.sum(axis=1, keepdims=True)
        models.append(LocalModel({"topics": share}, {"topics": ("topic", None)}, weight={"topics": weight}))
        truth.append(held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(adjusted_rand(truth, fuse(models, Counts()).labels))


def told(found: dict[str, dict[str, list[float]]]) -> str:
    """Means over draws, and what lacking words cost, draw by draw."""
    heads = ["words", "observations", "all words", "5 % lacking", "less", "30 % lacking", "less"]
    lines = ["# Words that sites lack", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, by_share in found.items():
        whole, *others = by_share.values()
        cells = [*name.split(", "), f"{np.mean(whole):.3f}"]
        for own in others:
            cells += [f"{np.mean(own):.3f}", str(paired(own, whole))]
        lines.append(f"| {' | '.join(cells)} |")
    note = "Adjusted Rand index, means over draws; less: than with all words, draw by draw, with its 95 % interval."
    return "\n".join([*lines, "", note]) + "\n"


def main() -> None:
    """Measure, keep and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--smoke", action="store_true")
    asked = parser.parse_args()
    settings, draws = (SETTINGS[:1], 2) if asked.smoke else (SETTINGS, asked.draws)
    seeds = range(FIRST_SEED, FIRST_SEED + draws)
    found: dict[str, dict[str, list[float]]] = {}
    for words, pseudo, observed in settings:
        of = {str(share): [ari(words, pseudo, observed, share, seed) for seed in seeds] for share in LACKING}
        found[f"{words}, {observed}"] = of
        print(words, observed, {share: round(float(np.mean(x)), 3) for share, x in of.items()}, flush=True)
    print(told(found))
    if not asked.smoke:
        keep(HERE / "lacking.json", {"ari": found}, {"seeds": list(seeds), "settings": list(SETTINGS)})
        (HERE / "lacking.md").write_text(told(found), encoding="utf-8")


if __name__ == "__main__":
    main()
