"""What a report holds, by name: the layout of `numbers_of`, which the page, the summary and the JSON share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypedDict

Number: TypeAlias = float | None
"""None where there is none: JSON knows no NaN."""

Numbers: TypeAlias = "Number | list[Numbers]"
"""An array as nested lists."""


class SiteGain(TypedDict):
    """What fusing gains a site, in nats, how many of its parameters it shares, and whether that may be chance."""

    gain: Number
    shared: int
    p_value: Number
    worth: bool | None


class Verdict(TypedDict):
    """Whether fusing is worth it: None if that cannot be said."""

    gain: Number
    p_value: Number
    worth: bool | None
    level: float
    sentence: str
    strangers: list[str]
    sites: list[SiteGain]


class Unsure(TypedDict):
    """A match, and how sure it is."""

    site: str
    row: int
    atom: int
    confidence: Number


class Certainty(TypedDict):
    """How many groups there are, and how sure matches are.

    `K_interval` holds their number with probability `level`, None where it was not drawn; `unsure` of `matches` are
    less sure than `sure_from`, the `least` are listed.
    """

    K: int
    K_interval: list[int] | None
    level: float
    how: str
    matches: int
    unsure: int
    sure_from: float
    least: list[Unsure]
    r_hat: Number
    effective_size: Number
    sentences: list[str]


class Doubt(TypedDict):
    """A match that is not certain, or lies far from its atom, and the most probable other atom (None: a new one)."""

    site: str
    row: int
    atom: int
    distance: Numbers
    confidence: Number
    other: int | None
    other_probability: Number


class Excluded(TypedDict):
    """A parameter that is set aside."""

    site: str
    row: int
    atom: int
    why: str
    probability: Number
    nearest: int | None


class AsideNumber(TypedDict):
    """How many parameters are set aside, and for which reason."""

    outliers: int
    artefacts: int
    all: int


class Aside(TypedDict):
    """What is not counted, and why; what a site holds in pieces."""

    set_aside: list[Excluded]
    set_aside_number: AsideNumber
    reasons: list[str]
    pieces: list[str]
    pieces_number: int
    junk_probability: Number


class Diagnosis(TypedDict):
    """How a site gets on with the others."""

    unshared: int
    score: Number
    surprise: Number
    shift: Number
    influence: Number
    warning: str | None


class Learned(TypedDict):
    """A hyperparameter: the paper's symbol, in words, of which arrays, and its value or values by column."""

    symbol: str
    name: str
    of: str
    value: Number | list[Number]


class Scattered(TypedDict):
    """The family of some arrays."""

    arrays: list[str]
    family: str
    shape: str | None


class Fit(TypedDict):
    """How the run went and what it learned."""

    families: list[Scattered]
    prior: str | None
    engine: str
    sweeps: int
    changes: list[int]
    converged: bool
    objective: Number
    history: list[Number]
    learned: list[Learned]


class Order(TypedDict):
    """Sites and atoms in an order in which those that go together are neighbours."""

    sites: list[int]
    atoms: list[int]


class Map(TypedDict):
    """Members and atoms on two principal axes, and the share of variance these explain."""

    explained: Numbers
    members: Numbers
    atoms: Numbers


class Groups(TypedDict):
    """The table of groups (`GroupTable`), cut to the features in which they differ most; None where there is nothing.

    `low` and `high` are ends of intervals of fused values at `level`, `noise` and `spread` deviations from site to site
    and from group to group, `members` points behind the local parameters that are listed, `columns` how many features
    there are. Of every group, those that are set aside included, `held` has in how many sites it is expected to be and
    the ends of an interval of that number.
    """

    word: str
    counted: str
    shares: bool
    features: list[str]
    units: list[str]
    decimals: list[int]
    columns: int
    means: Numbers
    errors: Numbers
    fused: Numbers
    low: Numbers
    high: Numbers
    level: float
    noise: list[Number]
    spread: list[Number]
    points: list[Number] | None
    aside: Number
    members: list[Number] | None
    held: Numbers


class PathNumbers(TypedDict):
    """Where an atom is at several times, by column, with the ends of an interval."""

    times: list[Number]
    values: Numbers
    low: Numbers
    high: Numbers


class InTime(TypedDict):
    """When groups live and where they go: times are numbers (dates: days since 1970), and in words.

    `moments` and `names` are those of the listed sites; `first`, `last`, `span`, `alive` (at the `newest` time) and
    `paths` of atoms, the latter in `columns`, with intervals at `level`.
    """

    dated: bool
    moments: list[Number]
    names: list[str]
    first: list[str]
    last: list[str]
    span: list[list[float]]
    alive: list[Number]
    newest: str
    sentence: str
    columns: list[str]
    level: float
    paths: list[PathNumbers]


class Alert(TypedDict):
    """What an owner of a site, or who fuses, should look at, and which sites it names."""

    sites: list[str]
    text: str


class SetNumbers(Aside):
    """One set: its matching, values, members, order, map, hyperparameters, diagnostics.

    `decimals` are digits after the point that each of the `columns` deserves, `warned` all sites that an alert names,
    also one that is not listed.
    """

    name: str
    K: int
    N: int
    shared: int
    sizes: list[int]
    labels: list[int]
    counts: list[int]
    columns: list[str]
    decimals: list[int]
    best: list[int]
    dimensions: int
    atoms: Numbers
    spread: Numbers
    members: Numbers
    distance: Numbers
    confidence: Numbers
    confidence_meaning: str | None
    certainty: Certainty | None
    doubtful_number: int | None
    doubtful: list[Doubt]
    order: Order
    map: Map
    roots: bool
    diagnostics: list[Diagnosis] | None
    fit: Fit
    words: list[list[list[str | float]]] | None
    groups: Groups
    time: InTime | None
    alerts: list[Alert]
    warned: list[str]


class Report(TypedDict):
    """All that a report shows."""

    format: int
    versions: dict[str, str]
    kind: str
    J: int
    sites: list[str]
    converged: bool
    objective: Number
    sure_from: float
    settings: Mapping[str, object]
    verdict: Verdict | None
    picture: dict[str, object] | None
    sets: list[SetNumbers]
    notes: list[str]
