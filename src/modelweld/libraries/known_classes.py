"""Which model classes can be read and written, by which functions: one line each.

A library is imported when one of its models is read or written, never before.

Fitted models of other libraries, written from fused parameters.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel


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
        of the two functions end in: ``".centre_models:kmeans"`` has `read_kmeans` and `write_kmeans`.
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

    @cached_property
    def library(self) -> str:
        """The package whose models these are."""
        return self.name.split(".")[0]

    @property
    def installed(self) -> bool:
        """Whether that package can be imported."""
        return find_spec(self.library) is not None

    @cached_property
    def version(self) -> str:
        """Version of the installed package, or nothing; looked up once, for the files of all packages are read."""
        try:
            return metadata.version({"sklearn": "scikit-learn"}.get(self.library, self.library))
        except metadata.PackageNotFoundError:
            return str(getattr(sys.modules.get(self.library), "__version__", ""))


@cache
def function_of(adapter: Adapter, verb: str) -> Callable[..., Any]:
    """The function of an adapter that does `read` or `write`."""
    module, _, ending = adapter.module.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module, __package__), f"{verb}_{ending}" if ending else verb)
    except ModuleNotFoundError as missing:
        command = f"pip install modelweld[{adapter.extra}]" if adapter.extra else f"pip install {missing.name}"
        raise InputError(f"{adapter.name} needs {missing.name!r}, which is not installed: {command}.") from None
    return found


DECOMPOSITIONS = (
    "DictionaryLearning MiniBatchDictionaryLearning NMF MiniBatchNMF FastICA FactorAnalysis SparsePCA "
    "MiniBatchSparsePCA PCA IncrementalPCA TruncatedSVD"
)


CLUSTERERS = (
    "AgglomerativeClustering SpectralClustering HDBSCAN DBSCAN OPTICS Birch MeanShift BisectingKMeans "
    "AffinityPropagation"
)


CHAINS = "Gaussian GMM Categorical Multinomial Poisson"


TABLE = (
    Adapter("sklearn.GaussianMixture", "mixture", ".mixture_models:gaussian"),
    Adapter("sklearn.KMeans", "mixture", ".centre_models:kmeans"),
    Adapter("sklearn.MiniBatchKMeans", "mixture", ".centre_models:kmeans"),
    Adapter("sklearn.BayesianGaussianMixture", "mixture", ".mixture_models:gaussian", writes=False),
    *(Adapter(f"sklearn.{name}", "mixture", ".centre_models:clusterer", writes=False) for name in CLUSTERERS.split()),
    Adapter("sklearn.GaussianNB", "class-table", ".centre_models:bayes"),
    Adapter("sklearn.MLPClassifier", "network", ".networks:mlp"),
    Adapter("sklearn.MLPRegressor", "network", ".networks:mlp"),
    Adapter("torch.Sequential", "network", ".traced_networks:torch", "torch"),
    Adapter("torch.Module", "deep-network", ".traced_networks:module", "torch"),
    *(Adapter(f"hmmlearn.{name}HMM", "hmm", ".hidden_markov:hmmlearn", "hmm") for name in CHAINS.split()),
    Adapter("hmmlearn.VariationalGaussianHMM", "hmm", ".hidden_markov:hmmlearn", "hmm", writes=False),
    Adapter("hmmlearn.VariationalCategoricalHMM", "hmm", ".hidden_markov:hmmlearn", "hmm", writes=False),
    Adapter("dynamax.ParamsGaussianHMM", "hmm", ".hidden_markov:dynamax", "dynamax"),
    Adapter("modelweld.StickyHDPHMM", "hmm", "modelweld.hmm.sticky"),
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
    Adapter("mne.ICA", "components", ".decompositions:ica", "mne"),
)


def _key(adapter: Adapter) -> tuple[str, str]:
    return adapter.library, adapter.name.split(".")[-1]


KNOWN = {_key(adapter): adapter for adapter in TABLE}
"""(Package, class) -> its adapter, those from outside the package included."""


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
    modelweld.errors.InputError: there is an adapter for sklearn.KMeans already, in '.centre_models:kmeans'...
    """
    known = KNOWN.setdefault(_key(adapter), adapter)
    if known != adapter:
        raise InputError(f"there is an adapter for {adapter.name} already, in {known.module!r}: name another class.")


def adapters() -> list[Adapter]:
    """Which model classes can be read and written, and whether their libraries are installed.

    Examples
    --------
    >>> next(a for a in adapters() if a.name == "sklearn.KMeans").kind
    'mixture'
    """
    return list(KNOWN.values())


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
    >>> from modelweld.libraries import read
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
    return function_of(adapter, "write")(local, adapter.name.split(".")[-1], **options)


def _usual(local: LocalModel) -> str:
    """The class to write for parameters that were not read from a model."""
    known = [a.name for a in adapters() if a.kind == local.kind and a.writes and a.installed]
    if not known:
        what = f"no installed library holds a {local.kind or 'model without a kind'}"
        raise InputError(f"{what}: modelweld.adapters() lists what there is. fusion.parameters() has the arrays.")
    return known[0]


def adapter_named(name: str) -> Adapter:
    """The line of the table for a class name, with or without its library."""
    found = [a for a in adapters() if name in (a.name, a.name.split(".")[-1])]
    if len(found) != 1:
        raise InputError(f"like is one of {', '.join(a.name for a in adapters() if a.writes)}; found {name!r}.")
    return found[0]


def like_most(models: Sequence[LocalModel]) -> str:
    """The class most sites sent, of those that can hold the fused model; the first of the table among equals."""
    order = {adapter.name: i for i, adapter in enumerate(adapters())}
    number = Counter(str(model.facts.get("class", "")) for model in models)
    holding = [name for name in number if name in order]
    if not holding:
        return ""
    return min(holding, key=lambda name: (-number[name], order[name]))
