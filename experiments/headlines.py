"""Claims that were made of this library, each with what the records say of it now: supported, in part, or withdrawn.

A headline names lines of the table of claims (`claims.py`) by how they begin, and its verdict follows from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

YES, NO, LEVEL = "yes", "**no**", "not told apart"
SUPPORTED, IN_PART, WITHDRAWN = "supported", "in part", "**withdrawn**"


class Line(Protocol):
    """What is asked of a line of the table of claims."""

    claim: str
    where: str
    holds: str
    by: str
    n: str


class Headline(NamedTuple):
    """A claim as it was first made, and how the lines begin that speak of it.

    Where it claims to be better (`beats`), being level is not enough; `now` is for what no line can decide.
    """

    claim: str
    lines: tuple[str, ...]
    beats: bool = False
    now: str = ""


HEADLINES = (
    Headline(
        "natural fusion is within 1 % of pooled data, ahead of the robust committee, and its 90 % intervals hold",
        ("natural fusion is within 1 %", "... and ahead of the robust committee", "... and its 90 % intervals"),
    ),
    Headline(
        "a fused chain beats one model of all frames",
        tuple(
            f"{who}: `fuse(models)` as good as full"
            for who in ("two people of the paper", "2 people", "3 people", "5 people", "8 people")
        ),
        beats=True,
    ),
    Headline("... in less than half of its time", ("Two people: less than half", "time at home, ")),
    Headline(
        "what the study of movements calls its default is `fuse(models)`",
        ("two people of the paper: `fuse(models)` as good as no matching",),
        now=f"{WITHDRAWN}: that row has another name, and the bare call is measured by itself",
    ),
    Headline(
        "fused topics are at least as good as k-means told their number",
        tuple(
            f"{corpus}, {measure}: fuse(models) beside k-means"
            for corpus in ("20 newsgroups", "40 books", "40 books, pages")
            for measure in ("perplexity", "npmi", "uci")
        ),
    ),
    Headline(
        "a refitted network beats the best local one, with about 100 units",
        ("digits: the refit beats", "... with about 100 units"),
    ),
    Headline("... and is within .01 of the ensemble", ("digits, one hidden layer", "mnist, one hidden layer")),
    Headline(
        'mixtures fused by `how="density"` are level with or ahead of Runnalls',
        ('`how="density"` is level with or ahead of Runnalls',),
    ),
    Headline("100 sites, noise 10: K within 5 % and an ARI of .985", ("J = 100, sigma = 10: ",)),
    Headline("20 states are found at 10 to 50 sites", ("10 sites: K", "25 sites: K", "50 sites: K")),
    Headline(
        "`fuse` is 280 to 680 times as quick as the textbook",
        ("`fuse(sites)` is quicker",),
        now=f"{WITHDRAWN}: quicker, by less",
    ),
)
"""In the order of the studies."""


def spoken(headline: Headline, lines: Sequence[Line]) -> list[Line]:
    """Lines that speak of it."""
    return [line for line in lines if line.claim.startswith(headline.lines)]


def verdict(headline: Headline, lines: Sequence[Line]) -> str:
    """From those of its lines.

    >>> from types import SimpleNamespace as Said
    >>> rows = [Said(claim="a: b", holds="yes"), Said(claim="a: c", holds="not told apart")]
    >>> verdict(Headline("A.", ("a",)), rows), verdict(Headline("A.", ("a",), beats=True), rows)
    ('supported', 'in part')
    """
    if headline.now:
        return headline.now
    good = {YES} if headline.beats else {YES, LEVEL}
    held = [line.holds in good for line in spoken(headline, lines)]
    ahead = any(line.holds == YES for line in spoken(headline, lines))
    return SUPPORTED + ("" if ahead else ": level") if all(held) else IN_PART if any(held) else WITHDRAWN


def table(lines: Sequence[Line]) -> list[str]:
    """Headlines in Markdown."""
    rows = ["| claim, as it was made | where | now | by how much | on how many |", "|---|---|---|---|---|"]
    for headline in HEADLINES:
        found = spoken(headline, lines)
        where = ", ".join(dict.fromkeys(f"[{one.where.removeprefix('../')}]({one.where})" for one in found))
        by = "; ".join(f"{short(one.claim)}: {one.by}" if len(found) > 1 else one.by for one in found)
        n = ", ".join(dict.fromkeys(one.n for one in found))
        rows.append(f"| {headline.claim} | {where} | {verdict(headline, lines)} | {by.replace('|', '/')} | {n} |")
    return rows


def short(claim: str) -> str:
    """What a line is about, without what it says of it."""
    return claim.removeprefix("... ").split(":")[0].removeprefix("and ")
