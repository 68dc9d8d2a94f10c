"""Units that sites state must agree, feature by feature; nothing is converted."""

from __future__ import annotations

from collections.abc import Sequence

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel


def check_units(models: Sequence[LocalModel]) -> None:
    """Refuse sites that measure a feature in another unit than the first site that says in which it does.

    Examples
    --------
    >>> sites = [LocalModel({}, {}, facts={"units": {"age": unit}}) for unit in ("years", "days")]
    >>> check_units(sites)
    Traceback (most recent call last):
    modelweld.errors.InputError: site 1: 'age' is in 'days', but in 'years' at site 0. Convert it at the site.
    """
    said: dict[str, tuple[str, object]] = {}
    for j, model in enumerate(models):
        units = model.facts.get("units", {})
        for feature, unit in units.items() if isinstance(units, dict) else ():
            where, first = said.setdefault(feature, (model.site or str(j), unit))
            if unit != first:
                raise InputError(
                    f"site {model.site or j}: {feature!r} is in {unit!r}, but in {first!r} at site {where}. Convert it "
                    "at the site."
                )
