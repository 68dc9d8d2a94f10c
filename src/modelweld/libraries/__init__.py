"""Models of other libraries: read into LocalModels, and written again from fused ones.

An adapter is two functions,

    read(model, **facts) -> LocalModel       what leaves the site; facts are what the object forgot (counts, X, ...)
    write(local, like) -> model              a fitted model of the class named `like`

and one line in `TABLE`, or, from outside the package, one call of `register`. A library is imported when one of its
models is read or written, never before.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from modelweld.errors import InputError
from modelweld.inputs.feature_names import with_lacking
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import as_model, check_centres, is_plain, take_columns
from modelweld.inputs.sets import with_units
from modelweld.kinds import kind_of
from modelweld.libraries.scaling import unscale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.pipeline import Pipeline


@cache
def _version(library: str) -> str:
    """Looked up once: the files of all installed packages are read for it."""
    try:
        return metadata.version({"sklearn": "scikit-learn"}.get(library, library))
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(library), "__version__", ""))


@dataclass(frozen=True)
class Adapter:
    """One model class.

    Attributes
    ----------
    name : str
        Of the class, after the package it comes from, ``"sklearn.KMeans"``: classes that inherit from it are read too.
    kind : str
        What it is: a name of `modelweld.kinds`.
    module : str
        Where `read` and `write` are; a name with a dot in front is a file of this folder. After a colon, what the names
        of the two functions end in: ``".mixture_models:kmeans"`` has `read_kmeans` and `write_kmeans`.
    extra : str
        Of modelweld, which installs the library.
    writes : bool
        Whether there is a `write`; if not, another adapter of the kind writes.

    Examples
    --------
    >>> adapter = Adapter("mypackage.MyMixture", "mixture", "mypackage.fusing")
    >>> adapter.library, adapter.writes
    ('mypackage', True)
    """

    name: str
    kind: str
    module: str
    extra: str = ""
    writes: bool = True

    @property
    def library(self) -> str:
        """The package whose models these are."""
        return self.name.split(".")[0]

    @property
    def installed(self) -> bool:
        """Whether that package can be imported."""
        return find_spec(self.library) is not None

    @property
    def version(self) -> str:
        """Version of the installed package, or nothing."""
        return _version(self.library)

    def function(self, verb: str) -> Callable[..., Any]:
        """Its `read` or `write`."""
        module, _, ending = self.module.partition(":")
        try:
            found: Callable[..., Any] = getattr(import_module(module, __name__), f"{verb}_{ending}" if ending else verb)
        except ModuleNotFoundError as missing:
            command = f"pip install modelweld[{self.extra}]" if self.extra else f"pip install {missing.name}"
            raise InputError(f"{self.name} needs {missing.name!r}, which is not installed: {command}.") from None
        return found


DECOMPOSITIONS = (
    "DictionaryLearning MiniBatchDictionaryLearning NMF MiniBatchNMF FastICA FactorAnalysis SparsePCA "
    "MiniBatchSparsePCA PCA IncrementalPCA TruncatedSVD"
)

CHAINS = "Gaussian GMM Categorical Multinomial Poisson"

TABLE = (
    Adapter("sklearn.GaussianMixture", "mixture", ".mixture_models:gaussian"),
    Adapter("sklearn.KMeans", "mixture", ".mixture_models:kmeans"),
    Adapter("sklearn.MiniBatchKMeans", "mixture", ".mixture_models:kmeans"),
    Adapter("sklearn.BayesianGaussianMixture", "mixture", ".mixture_models:gaussian", writes=False),
    Adapter("sklearn.GaussianNB", "class-table", ".mixture_models:bayes"),
    Adapter("sklearn.MLPClassifier", "network", ".networks:mlp"),
    Adapter("sklearn.MLPRegressor", "network", ".networks:mlp"),
    Adapter("torch.Sequential", "network", ".networks:torch", "torch"),
    *(Adapter(f"hmmlearn.{name}HMM", "hmm", ".hidden_markov:hmmlearn", "hmm") for name in CHAINS.split()),
    Adapter("hmmlearn.VariationalGaussianHMM", "hmm", ".hidden_markov:hmmlearn", "hmm", writes=False),
    Adapter("hmmlearn.VariationalCategoricalHMM", "hmm", ".hidden_markov:hmmlearn", "hmm", writes=False),
    Adapter("dynamax.ParamsGaussianHMM", "hmm", ".hidden_markov:dynamax", "dynamax"),
    Adapter("modelweld.StickyHDPHMM", "hmm", "modelweld.hmm.adapter"),
    Adapter("sklearn.GaussianProcessRegressor", "sparse-gp", ".processes:sklearn", writes=False),
    Adapter("gpytorch.ApproximateGP", "sparse-gp", ".processes:gpytorch", "gp", writes=False),
    Adapter("gpytorch.ExactGP", "sparse-gp", ".processes:gpytorch", "gp", writes=False),
    Adapter("modelweld.SparseGP", "sparse-gp", ".processes:sklearn"),
    Adapter("sklearn.LatentDirichletAllocation", "topics", ".topic_models:lda"),
    Adapter("gensim.LdaModel", "topics", ".topic_models:gensim", "topics"),
    Adapter("tomotopy.LDAModel", "topics", ".topic_models:tomotopy", "topics", writes=False),
    Adapter("tomotopy.HDPModel", "topics", ".topic_models:tomotopy", "topics", writes=False),
    Adapter("bertopic.BERTopic", "topic-vectors", ".topic_models:bertopic", "bertopic"),
    *(Adapter(f"sklearn.{name}", "components", ".decompositions:sklearn") for name in DECOMPOSITIONS.split()),
    Adapter("pycrostates.ModKMeans", "components", ".decompositions:microstates", "microstates"),
    Adapter("pycrostates.AAHCluster", "components", ".decompositions:microstates", "microstates"),
)

NO_PARTS = "It has no interchangeable parts, so there is nothing to match: "
INSTEAD = {
    ("LinearModel", "LinearClassifierMixin"): "average coefficients by their precision, or let the sites' predictions "
    "vote (an ensemble).",
    ("ClassifierMixin", "RegressorMixin"): "let the sites' predictions vote, or average them (an ensemble).",
}
"""Classes of scikit-learn whose models are no sets of interchangeable parts (coefficients, trees),
and what to do with them instead; the first that suits."""

_REGISTERED: list[Adapter] = []
"""Adapters from outside the package."""


def register(adapter: Adapter) -> None:
    """Enter an adapter from outside the package: `read`, `fuse` and `write` then know its class like any other.

    Parameters
    ----------
    adapter : Adapter
        Whose `module` can be imported and has the two functions: ``Adapter("mypackage.MyMixture", "mixture",
        "mypackage.fusing")`` reads and writes `MyMixture` by mypackage/fusing.py.

    Examples
    --------
    >>> register(Adapter("sklearn.KMeans", "mixture", "mypackage.fusing"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    modelweld.errors.InputError: there is an adapter for sklearn.KMeans already, in '.mixture_models:kmeans'...
    """
    known = next((a for a in adapters() if a.name == adapter.name), None)
    if known is None:
        _REGISTERED.append(adapter)
    elif known != adapter:
        raise InputError(f"there is an adapter for {adapter.name} already, in {known.module!r}: name another class.")


def adapters() -> list[Adapter]:
    """Which model classes can be read and written, and whether their libraries are installed.

    Examples
    --------
    >>> next(a for a in adapters() if a.name == "sklearn.KMeans").kind
    'mixture'
    """
    return [*TABLE, *_REGISTERED]


def read(
    model: object,
    *,
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
    """
    if isinstance(model, LocalModel):
        return _state(model.with_(site=site) if site else model, lacks, units, time)
    if is_plain(model):
        counts = cast("ArrayLike | None", facts.get("counts"))
        local = as_model(model, features, counts=counts)
        check_centres(local.sizes["atom"], centres or counts is not None)
        return _state(local.with_(site=site), lacks, units, time)
    try:
        return _state(_read_fitted(model, site, features, facts), lacks, units, time)
    except AttributeError as missing:  # what a fit learns ends in an underscore, by scikit-learn's convention
        if not (type(missing).__name__ == "NotFittedError" or (missing.name or "").endswith("_")):
            raise
        where = f"site {site!r}: " if site else ""
        raise InputError(f"{where}the {type(model).__name__} is not fitted: fit it to the site's data first.") from None


def _state(local: LocalModel, lacks: Sequence[str], units: Mapping[str, str] | None, time: Any) -> LocalModel:
    """The model with the units of its features, the features that its site lacks, and when it was trained."""
    local = local if time is None else local.with_(time=time)
    lacks = [lacks] if isinstance(lacks, str) else lacks
    local = with_units(local, units) if units else local
    if not lacks:
        return local
    if "feature" not in kind_of([local]).may_lack([local]):
        raise InputError(
            f"a {local.kind} cannot lack features ({local.facts.get('class', 'a LocalModel')}): fit it on those "
            "that all sites share."
        )
    return with_lacking(local, lacks)


def _read_fitted(model: object, site: str, features: Sequence[str] | None, facts: dict[str, object]) -> LocalModel:
    """What leaves a site, by the adapter of its class."""
    if not hasattr(model, "feature_names_in_"):
        columns, facts = take_columns(model, facts)
        features = columns if features is None else features
    if _is_pipeline(model):
        return unscale(model, lambda last, **more: read(last, site=site, **more), features, facts)
    adapter = adapter_of(model)
    names = features if features is not None else getattr(model, "feature_names_in_", None)
    options = {**facts, **({} if names is None else {"features": list(map(str, names))})}
    try:
        local: LocalModel = adapter.function("read")(model, **options)
    except TypeError as wrong:
        if "unexpected keyword" not in str(wrong) and "missing" not in str(wrong):
            raise
        function = adapter.function("read")
        raise InputError(f"{adapter.name}: {wrong}. See help({function.__module__}.{function.__name__}).") from None
    except ValueError as wrong:
        if isinstance(wrong, (InputError, AttributeError)):  # ours, or that it is not fitted
            raise
        # data that do not fit the model, in its library's words
        raise InputError(f"{f'site {site!r}: ' if site else ''}{adapter.name}: {wrong}") from wrong
    about = {"class": adapter.name, "version": adapter.version}
    return local.with_(site=site or local.site, facts={**local.facts, **about})


def adapter_of(model: object) -> Adapter:
    """The line of the table for a model, by its class or the nearest one it inherits from."""
    for cls in type(model).__mro__:
        for adapter in adapters():
            if (adapter.library, adapter.name.split(".")[-1]) == (cls.__module__.split(".")[0], cls.__name__):
                return adapter
    cls = model if isinstance(model, type) else type(model)
    name = cls.__name__ if isinstance(model, type) else f"{cls.__module__.split('.')[0]}.{cls.__name__}"
    raise InputError(
        f"{name.removeprefix('builtins.')} cannot be read. {remedy(model)} modelweld.adapters() lists the classes that "
        "are known."
    )


def list_facts(model: object) -> tuple[str, ...]:
    """Names of the facts that `read` takes of a model, or of the one at the end of a Pipeline."""
    last = model.steps[-1][1] if _is_pipeline(model) else model
    return tuple(signature(adapter_of(last).function("read")).parameters)


def _is_pipeline(model: object) -> TypeGuard[Pipeline]:
    return type(model).__name__ == "Pipeline" and type(model).__module__.startswith("sklearn.")


def adapter_named(name: str) -> Adapter:
    """The line of the table for a class name, with or without its library."""
    found = [a for a in adapters() if name in (a.name, a.name.split(".")[-1])]
    if len(found) != 1:
        raise InputError(f"like is one of {', '.join(a.name for a in adapters() if a.writes)}; found {name!r}.")
    return found[0]


def write(local: LocalModel, like: type | str | None = None, **options: object) -> Any:
    """A fitted model of a library from parameters.

    Parameters
    ----------
    local : LocalModel
        Fused parameters (`Fusion.fused`), or a site's own.
    like : class or str, optional
        Which class to write; default the one it was read from, or the nearest that can hold it, or the first of its
        kind whose library is installed.
    **options
        For the adapter.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = KMeans(3, n_init=1, random_state=0).fit(X)
    >>> bool((write(read(model)).predict(X) == model.predict(X)).all())
    True
    """
    name = like if isinstance(like, str) else getattr(like, "__name__", "")
    adapter = adapter_named(name or str(local.facts.get("class", "")) or _usual(local))
    if adapter.kind != local.kind:
        raise InputError(f"a {local.kind} cannot be written as {adapter.name}, which is a {adapter.kind}.")
    if not adapter.writes:
        near = [a for a in adapters() if a.kind == adapter.kind and a.writes]
        adapter = next((a for a in near if a.module == adapter.module), near[0])
    return adapter.function("write")(local, adapter.name.split(".")[-1], **options)


def _usual(local: LocalModel) -> str:
    """The class to write for parameters that were not read from a model."""
    known = [a.name for a in adapters() if a.kind == local.kind and a.writes and a.installed]
    if not known:
        raise InputError(
            f"no installed library holds a {local.kind or 'model without a kind'}: modelweld.adapters() lists what "
            "there is; the parameters themselves are fusion.parameters().arrays."
        )
    return known[0]


def read_site(model: object) -> LocalModel:
    """A LocalModel of what a site sends: one, plain values, or a fitted model."""
    if isinstance(model, LocalModel):
        return model
    return as_model(model) if is_plain(model) else read(model)


def like_most(models: Sequence[LocalModel]) -> str:
    """The class most sites sent, of those that can hold the fused model; the first of the table among equals."""
    order = {adapter.name: i for i, adapter in enumerate(adapters())}
    number = Counter(str(model.facts.get("class", "")) for model in models)
    holding = [name for name in number if name in order]
    if not holding:
        return ""
    return min(holding, key=lambda name: (-number[name], order[name]))


def remedy(model: object) -> str:
    """What to do with a model that cannot be read.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> remedy(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))[:45]
    'It has no interchangeable parts, so there is '
    """
    bases = {f"{cls.__module__}.{cls.__name__}" for cls in type(model).__mro__}
    if "torch.nn.modules.module.Module" in bases:
        return (
            "Networks are read as torch.nn.Sequential of Linear layers and activations: wrap its layers as one, "
            "Sequential(net.fc1, ReLU(), net.fc2), which shares their weights."
        )
    if isinstance(model, Mapping) and is_state(model):
        return (
            "A state_dict does not say which activations lie between its layers: give the torch.nn.Sequential itself."
        )
    if isinstance(model, (str, os.PathLike)):
        return "If it is the name of a file, modelweld.load reads that."
    if isinstance(model, type):
        return "It is a class: give models of it that are fitted."
    known = {cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("sklearn.")}
    for classes, instead in INSTEAD.items():
        if known.intersection(classes):
            return NO_PARTS + instead
    return (
        "Give its parameters as a LocalModel (named arrays and their axes), or write an adapter: two functions, see "
        "modelweld.libraries."
    )


def is_state(given: Mapping[str, object]) -> bool:
    """Whether these are a network's tensors by the names of its layers, and not sites by theirs."""
    return any(str(name).endswith("weight") and type(part).__name__ == "Tensor" for name, part in given.items())
