"""Why a model cannot be read, and what to do with it instead."""

from __future__ import annotations

import os
from collections.abc import Mapping

from modelweld.errors import InputError
from modelweld.libraries.known_classes import Adapter, function_of

PREDICTORS = {"LinearModel", "LinearClassifierMixin", "ClassifierMixin", "RegressorMixin"}
"""Classes of scikit-learn whose models are no sets of interchangeable parts (coefficients, trees)."""


def refuse(model: object) -> str:
    """What is said of a model whose class is not known."""
    cls = model if isinstance(model, type) else type(model)
    name = cls.__name__ if isinstance(model, type) else f"{cls.__module__.split('.')[0]}.{cls.__name__}"
    known = "modelweld.adapters() lists the classes that are known."
    return f"{name.removeprefix('builtins.')} cannot be read. {remedy(model)} {known}"


def explain(wrong: Exception, model: object, adapter: Adapter | None, site: str) -> str:
    """What an adapter's error says of a model; nothing if it is no fault of the model, or said in our words already."""
    where = f"site {site!r}: " if site else ""
    lacks = "_" if type(wrong).__name__ == "NotFittedError" else getattr(wrong, "name", None) or ""
    if lacks.endswith("_"):  # what a fit learns, by scikit-learn's convention
        return f"{where}the {type(model).__name__} is not fitted: fit it to the site's data first."
    if isinstance(wrong, InputError) or type(getattr(wrong, "obj", 0)).__module__ not in ("builtins", "numpy"):
        return ""  # the other attributes that are lacking are those of what stands in the place of an array
    if adapter is not None and isinstance(wrong, ValueError):  # data that do not fit the model, in its library's words
        return f"{where}{adapter.name}: {wrong}"
    if adapter is None or ("unexpected keyword" not in str(wrong) and "missing" not in str(wrong)):
        what = f"{where}the {type(model).__name__} holds something that no fitted one does ({wrong})"
        return f"{what}. Fit it again, or load it with the versions that saved it."
    function = function_of(adapter, "read")
    return f"{adapter.name}: {wrong}. See help({function.__module__}.{function.__name__})."


def remedy(model: object) -> str:
    """What to do with a model that cannot be read.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> remedy(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))[:45]
    'It has no interchangeable parts, so there is '
    """
    if isinstance(model, Mapping) and is_state(model):
        return "A state_dict does not say which activations lie between its layers: give the network itself."
    if isinstance(model, (str, os.PathLike)):
        return "If it is the name of a file, modelweld.load reads that."
    if isinstance(model, type):
        return "It is a class: give models of it that are fitted."
    if PREDICTORS & {cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("sklearn.")}:
        return (
            "It has no interchangeable parts, so there is nothing to match: average the sites' predictions or, of a "
            "linear model, its coefficients by their precision."
        )
    return (
        "Give its parameters as a LocalModel (named arrays and their axes), or write an adapter: modelweld.libraries."
    )


def is_state(given: Mapping[str, object]) -> bool:
    """Whether these are a network's tensors by the names of its layers, and not sites by theirs."""
    return any(str(name).endswith("weight") and type(part).__name__ == "Tensor" for name, part in given.items())
