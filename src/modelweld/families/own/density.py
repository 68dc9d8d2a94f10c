"""A family from nothing but log densities: of values given their global value, and of global values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from modelweld.errors import InputError
from modelweld.families.own.jax_functions import Guess, LogDensity, LogPrior, Start
from modelweld.families.own.quadrature import FactorisingDensity
from modelweld.families.own.user_density import UserDensity


def from_density(
    log_density: LogDensity,
    log_prior: LogPrior,
    start: Start,
    *,
    factorises: bool = True,
    positive: Sequence[str] = (),
    fixed: Sequence[str] = (),
    guess: Guess | None = None,
    learning: Literal["likelihood", "nothing"] = "likelihood",
) -> UserDensity:
    """Make a family of two functions written with ``jax.numpy``; needs jax, ``pip install "modelweld[jax]"``.

    Parameters
    ----------
    log_density : function (v, theta, h)
        Log density of a local value v (D,) given its global value theta (D,), normalised over v. `h` is a dict of
        hyperparameters, each a number or an array.
    log_prior : function (theta, h)
        Log density of global values, normalised over all real theta. If a global value is positive or a probability,
        let theta be its logarithm or logit.
    start : dict, list of dicts, or function (mean, noise, spread)
        Hyperparameters to start from, by name. From a bad start nothing is ever matched: where units are not known
        beforehand, give a function. It gets mean, noise variance and variance of the global values (D,) as read off the
        values the way `Gaussian` does, and returns a dict. Of several starts the best objective wins.
    factorises : bool
        Both are products over coordinates: they return **one number per coordinate** (D,), and integrals are done on a
        grid. Others are refused; write a `Family` for them (docs/guide/family.md).
    positive : sequence of str
        Hyperparameters that must stay positive (scales, degrees of freedom); they are learned as logarithms.
    fixed : sequence of str
        Hyperparameters that are not learned.
    guess : function (v), optional
        A global value that explains v well; default v itself. It must be given if theta is not in the units of v.
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned, by gradient, as the most likely ones given the matching.

    Returns
    -------
    Family
        To be handed to `fuse`. Global values are posterior means.
        ``family.evidence_error(rows)`` says how accurate evidences are; a warning is given if that is not enough for a
        matching. ``family.learned()`` has the hyperparameters.

    Notes
    -----
    A weight of zero means not seen; other weights, and variances, are refused: what they mean is the density's to say.
    Send them as a further array of the same family, so that they stand beside the values in v.

    Functions are compiled once: hand in the same function objects, not new lambdas, when you make many families.
    Densities should be smooth in theta. Everything is computed in float64, whatever jax is set to elsewhere.

    Examples
    --------
    Student-t noise, whose degrees of freedom are learned, about normal atoms:

    >>> import jax.numpy as jnp, numpy as np, modelweld
    >>> from jax.scipy.stats import norm, t
    >>> def log_density(v, theta, h):
    ...     return t.logpdf(v, h["df"], theta, h["scale"])
    >>> def log_prior(theta, h):
    ...     return norm.logpdf(theta, h["mean"], h["spread"])
    >>> def start(mean, noise, spread):
    ...     return {"df": 5.0, "scale": noise**0.5, "mean": mean, "spread": spread**0.5}
    >>> family = from_density(log_density, log_prior, start, factorises=True, positive=("df", "scale", "spread"))
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 10, (4, 3))
    >>> held = ([0, 1], [1, 2, 3], [3, 0], [0, 1, 2])
    >>> sites = [atoms[own] + 0.1 * rng.standard_t(3, (len(own), 3)) for own in held]
    >>> fusion = modelweld.fuse(sites, family)
    >>> fusion.K, sorted(fusion.family.learned())
    (4, ['df', 'mean', 'scale', 'spread'])
    """
    for name, function in (("log_density", log_density), ("log_prior", log_prior)):
        if not callable(function):
            raise InputError(f"from_density: {name} is a function written with jax.numpy; found {function!r}.")
    if not factorises:
        raise InputError(
            "from_density: a density that does not factorise needs a Family of its own: docs/guide/family.md."
        )
    names = _names(positive, "positive"), _names(fixed, "fixed")
    given = (log_density, log_prior, start, *names, guess, learning)
    return FactorisingDensity(*given)


def _names(given: Sequence[str], what: str) -> tuple[str, ...]:
    """Names of hyperparameters; one alone is easily given as a string."""
    if isinstance(given, str):
        raise InputError(f"from_density: {what} is a sequence of names; write {what}=({given!r},).")
    return tuple(given)
