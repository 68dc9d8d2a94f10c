"""What manifests say, as types: the published `schema.json` for the type checker, and what tensors of a file are."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

Tensor = NDArray[np.generic]
"""Numbers of any type that a file may hold."""

NamedArrays = dict[str, ArrayLike]
"""Arrays without a manifest, and names of features and of the site beside them."""

Number = float | dict[str, str]
"""A number, or one that JSON lacks, spelt out: ``{"float": "inf"}``."""

Spelt = str | list[str]
"""The name of an array, or names of several."""

Described = TypedDict("Described", {"class": str, "fields": dict[str, object]})
"""A family or prior: its class by name, and its fields."""


class ArrayEntry(TypedDict):
    """One array of a model, and where its values and what stands beside them are."""

    name: str
    axes: list[str | None]
    tensor: str
    variance: NotRequired[str]
    weight: NotRequired[str]


class CoordinateEntry(TypedDict):
    """Names along a coordinate; in fusions, which of the manifest's lists they are."""

    name: str
    names: NotRequired[list[str]]
    list: NotRequired[int]


class TimeContent(TypedDict, total=False):
    """When a model was trained: a number, or a date in words."""

    time: float | str


class ModelEntry(TimeContent):
    """A LocalModel."""

    site: str
    kind: str
    arrays: list[ArrayEntry]
    riding: list[str]
    coordinates: list[CoordinateEntry]
    partial: list[str]
    facts: dict[str, object]
    counts: NotRequired[dict[str, float]]
    library: NotRequired[dict[str, object]]


class FamilyEntry(TypedDict):
    """The family of an array, or of several; in slim fusions, where its sums are."""

    key: Spelt
    family: Described
    sums: NotRequired[str]


class ValuesEntry(TypedDict):
    """Global values of an array."""

    key: Spelt
    tensor: str


class ArtefactEntry(TypedDict):
    """An atom that others explain."""

    atom: int
    made_of: list[int]
    log_odds: Number


class TwinEntry(TypedDict):
    """A site that repeats another."""

    site: int
    first: int


class MatchingEntry(TypedDict):
    """The matching of one set."""

    set: str
    labels: str
    offsets: str
    counts: str
    history: str
    changes: str
    families: list[FamilyEntry]
    values: list[ValuesEntry]
    prior: Described | None
    objective: Number
    converged: bool
    engine: str
    delta: float
    artefacts: list[ArtefactEntry]
    kept: str | None
    reasons: list[str]
    screened: NotRequired[bool]
    twins: NotRequired[list[TwinEntry]]


class Head(TypedDict):
    """What every manifest begins with, and hashes of all tensors."""

    version: str
    modelweld: NotRequired[str]
    sha256: dict[str, str]


class SiteManifest(Head):
    """Of a site's file."""

    format: Literal["modelweld-site"]
    model: ModelEntry


class GivenContent(TypedDict, total=False):
    """What the sites of a fusion sent: models, or plain arrays one below the other."""

    models: list[ModelEntry]
    values: str
    offsets: str


class SettingsContent(TypedDict, total=False):
    """What `fuse` was asked for, where `fuse` made the fusion."""

    settings: dict[str, object]


class FusionContent(GivenContent, SettingsContent):
    """A fusion."""

    sites: list[str]
    lists: list[list[str]]
    matchings: list[MatchingEntry]


class FusionManifest(Head, FusionContent):
    """Of a fusion's file."""

    format: Literal["modelweld-fusion"]


class SlimContent(TypedDict):
    """A fusion without its sites."""

    pattern: ModelEntry
    families: list[FamilyEntry]
    prior: Described
    counts: str
    sizes: str
    names: str
    opened: int


class SlimManifest(Head, SlimContent):
    """Of a slim fusion's file."""

    format: Literal["modelweld-slim"]


Manifest = SiteManifest | FusionManifest | SlimManifest
