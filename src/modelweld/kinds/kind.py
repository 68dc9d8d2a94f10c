"""What a kind of model is asked, with the answers that suit most: a kind overrides those that do not suit it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from modelweld.core.family import Family
from modelweld.core.values import Array, Key
from modelweld.errors import Finding, InputError
from modelweld.fit.screening.totals import Totals, total_values
from modelweld.inputs.feature_names import spell_lacking
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import check_models
from modelweld.kinds.layout import Layout

if TYPE_CHECKING:
    from modelweld.kinds.fused_parts import Picture
    from modelweld.results.fit_result import FitResult


Facts = Mapping[str, object]
"""What a site states beside its arrays, as in `LocalModel.facts`."""


class Kind:
    """A kind of model; this one is that of named arrays which do not say what they are the parameters of.

    Attributes
    ----------
    name, plural : str
        As in `LocalModel.kind`, and what a report calls several.
    hows : mapping of str to str
        Ways to make fused parameters and what they do; the first is the default unless `default_how` says otherwise.
    has_outliers : bool
        Whether values far from all others are likely mistakes, and are looked for before the fit.
    marginal : bool
        Whether such a model of some of its features is one again: its marginal distribution.
    stands_for_points : bool
        Whether every member of a set describes some of the site's points, so that their number should be known before
        the model leaves the site.
    splits : bool
        Whether sites may hold an atom in fragments though they send no standard errors to tell.
    counted : str
        What the array `counts`, where there is one, has numbers of.
    shown : tuple of str or None
        Arrays by whose columns people know a member of a set; None: those by which it is matched.

    Examples
    --------
    >>> class DoseCurves(Kind):
    ...     name, plural = "dose-curves", "dose curves"
    >>> DoseCurves().marginal, list(DoseCurves().hows)
    (True, [])
    """

    name: ClassVar[str] = ""
    plural: ClassVar[str] = "models"
    hows: ClassVar[Mapping[str, str]] = {}
    has_outliers: ClassVar[bool] = True
    marginal: ClassVar[bool] = True
    stands_for_points: ClassVar[bool] = True
    splits: ClassVar[bool] = False
    counted: ClassVar[str] = "points"
    shown: ClassVar[tuple[str, ...] | None] = None

    def layout(self, model: LocalModel) -> Layout:
        """What such a model must look like, by which files are checked; by default anything will do."""
        return Layout(sets=tuple(model.sizes), arrays={}, needed=())

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """The same models with the same arrays, where a kind has variants; refused if they cannot be."""
        return list(models)

    def has_places(self, model: LocalModel) -> bool:
        """Whether what decides the matching lies in the space of features, which have units and offsets."""
        return not self.name

    def may_lack(self, models: Sequence[LocalModel]) -> tuple[str, ...]:
        """Coordinates of which a site may lack what others have, and have no say there: features of plain values."""
        return () if self.name else ("feature",)

    def arrange(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """The same models with the same arrays, aligned by name; refused if they do not describe the same things."""
        return check_models(self.harmonise(models), self.may_lack(models))

    def doubts(self, models: Sequence[LocalModel], arranged: Sequence[LocalModel]) -> list[Finding]:
        """What names of models leave open, and what is odd about their data once they are arranged alike."""
        named = {coordinate for model in models for coordinate in model.coordinates}
        return [
            finding
            for coordinate in self.may_lack(models)
            if coordinate in named
            for finding in spell_lacking(models, coordinate)
        ]

    def weigh(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """The same models, with standard errors where a kind can say how well values are known that sent none."""
        return list(models)

    def families(self, models: Sequence[LocalModel]) -> Mapping[Key, Family] | None:
        """Which arrays decide the matching, and their families; None: all that are not auxiliary, as Gaussians."""
        return None

    def holds_atoms_once(self, models: Sequence[LocalModel]) -> bool:
        """Whether two values of a site are different atoms, however alike they are: fragments are then not looked
        for.
        """
        return False

    def default_how(self, fusion: FitResult) -> str:
        """The way to make fused parameters if none is asked for."""
        return next(iter(self.hows), "")

    def fuse(self, fusion: FitResult, how: str, *args: Any, **options: Any) -> LocalModel:
        """Fused parameters, arranged like a site's. A kind names its own options, and takes them by name."""
        raise InputError("these sites sent arrays, not models: fusion.atoms has the result. Fuse fitted models.")

    def move(self, model: LocalModel, arrays: Mapping[str, Array]) -> LocalModel:
        """The model with these arrays, matched ones that follow draws of their atoms; auxiliary ones follow."""
        return model.with_(arrays={**model.arrays, **arrays})

    def rescale(self, model: LocalModel, scale: Array, offset: Array) -> LocalModel:
        """The model of x = scale * y + offset, given that of y: places with their standard errors, and widths."""
        if not self.has_places(model):
            raise InputError(f"scalers before a {self.name} cannot be undone; fit it without them.")
        arrays, variance, plain = dict(model.arrays), dict(model.variance), not self.name
        for name, values in model.arrays.items():
            if name.endswith("covariances"):
                arrays[name] = np.asarray(values) * scale[:, None] * scale
            elif name.endswith("variances"):
                arrays[name] = np.asarray(values) * scale**2
            elif name.endswith("means") or (plain and name not in model.auxiliary):
                arrays[name] = np.asarray(values) * scale + offset
                if name in variance:
                    variance[name] = np.asarray(variance[name]) * scale**2
        return model.with_(arrays=arrays, variance=variance)

    def totals(self, model: LocalModel) -> Totals | None:
        """Mean and deviation of all points of a site, which other units and orders change; None: not known."""
        deciding = [name for name in model.arrays if name not in model.auxiliary]
        if self.name or len(deciding) != 1 or np.ndim(model.arrays[deciding[0]]) != 2:
            return None
        seen = model.weight.get(deciding[0])
        return total_values(np.asarray(model.arrays[deciding[0]]), None if seen is None else np.asarray(seen) > 0)

    def picture(self, fusion: FitResult) -> Picture | None:
        """What to draw of the fused model; None if there is nothing particular."""
        return None

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """Numbers (atoms, words) by which atoms of a set are known, and the words; None if they are known by none."""
        return None

    def concerns(self, model: LocalModel, *, fewest: int, compared: bool) -> list[str]:
        """What may give away too much of a site's data, but not for certain.

        Parameters
        ----------
        model : LocalModel
            What is to leave.
        fewest : int
            Points below which something describes persons.
        compared : bool
            Whether it was made sure that no array holds rows of the data.
        """
        return []


def lay_out(
    arrays: Mapping[str, Any],
    axes: Mapping[str, tuple[str, ...]],
    matched: Collection[str],
    *sets: str,
    **names: Sequence[str] | None,
) -> dict[str, Any]:
    """Fields of a LocalModel that follow from the `axes` of its kind's arrays.

    Axes are `sets`, or coordinates that have a name where their entries do (`names`). All arrays but those that are
    `matched` are auxiliary.
    """
    coordinates = {axis: [str(name) for name in spelt] for axis, spelt in names.items() if spelt is not None}
    found = {name: tuple(a if a in sets or a in coordinates else None for a in axes[name]) for name in arrays}
    auxiliary = [name for name in arrays if name not in matched]
    return {"arrays": arrays, "axes": found, "coordinates": coordinates, "auxiliary": auxiliary}
