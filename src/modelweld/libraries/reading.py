"""What leaves a site: the parameters of a fitted model, read by the adapter of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from modelweld.errors import DataWarning, Finding, InputError, warn_user
from modelweld.inputs.feature_names import with_lacking, with_units
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import as_model, check_centres, is_plain, take_columns
from modelweld.kinds import kind_of
from modelweld.libraries.centre_models import summarise_groups
from modelweld.libraries.known_classes import KNOWN, Adapter, function_of
from modelweld.libraries.own_rows import doubt_columns
from modelweld.libraries.refusals import explain, refuse
from modelweld.libraries.scaling import unscale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.pipeline import Pipeline


def read(
    model: object = None,
    *,
    labels: object = None,
    site: str = "",
    features: Sequence[str] | None = None,
    lacks: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    time: Any = None,
    centres: bool = False,
    **facts: object,
) -> LocalModel:
    """What leaves a site: a fitted model's parameters, and nothing else.

    Parameters
    ----------
    model : fitted model, scikit-learn Pipeline of scalers and one, or table of parameters
        See `adapters()` for what is known. Scalers are undone: parameters leave in the units of the data. Of a table
        (array, pandas, polars) every row is a parameter, if `centres` or ``counts=`` say so.
    labels : array (n,), optional
        Instead of a model: the group of each row of ``X=``, found by whatever clustering. Rows labelled -1 (noise), or
        not at all, stay out; what leaves are means, covariances or variances, and numbers of rows.
    site : str, optional
        A name for messages and tables.
    features : sequence of str, optional
        Names of the features; by default those the model was fitted with, or those of the columns of `X`.
    lacks : sequence of str, optional
        Features of the other sites that this one never measured: it has no say in them (weight zero). For mixtures,
        k-means and hidden Markov models with Gaussian states.
    units : mapping of str to str, optional
        Units of features, ``{"weight": "kg"}``: they rule, and sites that state different ones are not fused.
    time : number or date, optional
        When the model was trained: see `modelweld.fuse`.
    centres : bool
        Whether the rows of a table are centres of groups. A table of which nothing says so is refused: its rows may be
        people's, and would leave as they are.
    **facts
        What the model object forgot, such as ``n=`` or ``counts=`` (numbers of points), ``X=`` (the site's data, from
        which they are computed here; it does not travel), ``lengths=`` of sequences. Each adapter says which it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> local = read(GaussianMixture(1).fit(X), n=50, site="north")
    >>> {name: values.shape for name, values in local.arrays.items()}
    {'means': (1, 2), 'covariances': (1, 2, 2), 'counts': (1,)}
    >>> read(X=X, labels=(X[:, 0] > 0).astype(int)).arrays["counts"].tolist()
    [25.0, 25.0]
    """
    if labels is not None:
        if model is not None or facts.keys() != {"X"}:
            raise InputError("labels go with their rows, and with no model: modelweld.read(X=X, labels=labels).")
        local = summarise_groups(facts["X"], labels, features=features).with_(site=site)
    elif isinstance(model, LocalModel):
        local = model.with_(site=site) if site else model
    elif is_known(model):
        local = _read_fitted(model, site, features, facts)
    elif is_plain(model):
        counts = cast("ArrayLike | None", facts.get("counts"))
        local = as_model(model, features, counts=counts).with_(site=site)
        check_centres(local.sizes["atom"], centres or counts is not None)
    else:
        raise InputError(refuse(model))
    return _state(local, lacks, units, time)


def _state(local: LocalModel, lacks: Sequence[str], units: Mapping[str, str] | None, time: Any) -> LocalModel:
    """The model with the units of its features, the features that its site lacks, and when it was trained."""
    local = local if time is None else local.with_(time=time)
    local = with_units(local, units) if units else local
    if not lacks:
        return local
    if "feature" not in kind_of([local]).may_lack([local]):
        what = local.facts.get("class", "a LocalModel")
        raise InputError(f"a {local.kind} cannot lack features ({what}): fit it on those that all sites share.")
    return with_lacking(local, [lacks] if isinstance(lacks, str) else lacks)


def _read_fitted(model: object, site: str, features: Sequence[str] | None, facts: dict[str, object]) -> LocalModel:
    """What leaves a site, by the adapter of its class."""
    if "X" in facts and not hasattr(model, "feature_names_in_"):
        columns, facts = take_columns(model, facts)
        features = columns if features is None else features
    adapter = _adapter_of(model)
    try:
        if adapter is None:
            return unscale(cast("Pipeline", model), partial(read, site=site), features, facts)
        names = features if features is not None else getattr(model, "feature_names_in_", None)
        options = {**facts, **({} if names is None else {"features": list(map(str, names))})}
        local: LocalModel = function_of(adapter, "read")(model, **options)
    except (AttributeError, LookupError, TypeError, UnboundLocalError, ValueError) as wrong:
        if said := explain(wrong, model, adapter, site):
            raise InputError(said) from wrong
        raise
    about: dict[str, object] = {"class": adapter.name, "version": adapter.version, **local.facts}
    odd = doubt_columns(facts["X"], local.coordinates.get("feature")) if "X" in facts else ()
    doubts = [*local.facts.get("doubts", ()), *odd]
    for doubt in doubts:
        warn_user(Finding(f": {doubt}", DataWarning, [site or adapter.name]), DataWarning)
    return local.with_(
        site=site or local.site, facts={**about, **local.facts, **({"doubts": doubts} if doubts else {})}
    )


def is_known(model: object) -> bool:
    """Whether a model's class has an adapter, or it is a Pipeline."""
    return _adapter_of(model) is not None or _is_pipeline(model)


def _adapter_of(model: object) -> Adapter | None:
    """The adapter of a model's class, or of the nearest one it inherits from."""
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(model).__mro__)
    return next((KNOWN[name] for name in names if name in KNOWN), None)


def _is_pipeline(model: object) -> TypeGuard[Pipeline]:
    return type(model).__name__ == "Pipeline" and type(model).__module__.startswith("sklearn.")


def list_facts(model: object) -> tuple[str, ...]:
    """Names of the facts that `read` takes of a model, or of the one at the end of a Pipeline."""
    adapter = _adapter_of(model.steps[-1][1] if _is_pipeline(model) else model)
    if adapter is None:
        raise InputError(refuse(model))
    return tuple(signature(function_of(adapter, "read")).parameters)


def read_site(model: object) -> LocalModel:
    """A LocalModel of what a site sends: one, plain values, or a fitted model."""
    return as_model(model) if is_plain(model) and not isinstance(model, LocalModel) else read(model)
