"""The estimator: StickyHDPHMM, in the manner of scikit-learn and hmmlearn.

Whether the settings of a StickyHDPHMM make sense.

modelweld's own StickyHDPHMM.

What leaves is what adds: expected moves, starts and *effective* frames (zeta times the frames: n frames that resemble
their neighbours are worth fewer), and the means and covariances of these frames as they are, without the prior. Fused,
they are the statistics of all sites' frames added through the matching. Writing is then the last step of a fit: prior
and added statistics give the posteriors, and what few frames cannot tell, the prior does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from modelweld.core.values import Array, Index
from modelweld.errors import ConvergenceWarning, InputError, ModelweldWarning, check_choice, warn_user
from modelweld.hmm import windows
from modelweld.hmm.ascent import Concentrations, Course, Point, Posterior, Problem, Setting, Sticks, stack_counts
from modelweld.hmm.forward_backward import forward_backward, most_probable
from modelweld.hmm.statistics import Prior, Sequences, Summary, check_sequences, features, learn_prior
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import full_covariances, hmm
from modelweld.kinds.mixture_components import FEWEST_POINTS, diagonals


def check_settings(model: StickyHDPHMM) -> None:
    """Refuse settings that are none."""
    for name in ("n_states", "window", "n_init", "max_iter"):
        value = getattr(model, name)
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} is a whole number, at least 1; found {value!r}.")
    for name in ("eta", "gamma", "eta0", "mean_precision", "tol"):
        if not is_number(getattr(model, name)) or not 0 < getattr(model, name) < np.inf:
            raise InputError(f"{name} is a positive number; found {getattr(model, name)!r}.")
    if not is_number(model.kappa) or not 0 <= model.kappa < np.inf:
        raise InputError(f"kappa is a number, not negative; found {model.kappa!r}.")
    if model.zeta != "auto" and not (is_number(model.zeta) and 0 < model.zeta <= 1):
        raise InputError(f"zeta is 'auto' or a number above 0, at most 1; found {model.zeta!r}.")
    if model.prior_scale != "learned" and not (is_number(model.prior_scale) and 0 < model.prior_scale < np.inf):
        raise InputError(f"prior_scale is 'learned' or a positive number; found {model.prior_scale!r}.")
    check_choice("start", model.start, ("windows", "random"))


def is_number(value: object) -> TypeGuard[float]:
    """Whether a setting is a real number."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


PILOT = "in the first fit, by which zeta is chosen, so that zeta may be too small. Raise n_states, or give zeta"
"""What it means that the fit which takes frames for independent, and so cuts them finely, is short of states."""


def warn_if_all_used(found: int, most: int, meaning: str) -> None:
    """Say that a fit ended with as many states as it may have."""
    if found == most > 1:
        warn_user(f"all {most} states are in use, {meaning}.", ModelweldWarning)


PILOT_GAIN = 1e-3
"""Gain per frame below which the first fit, by which zeta is found, climbs no further: tau does not notice."""

PAPER_MEAN_PRECISION = 1e-4
"""The paper does not say; this is what bnpy, its likely program, takes."""


class StickyHDPHMM(BaseEstimator):  # type: ignore[misc]
    """A hidden Markov model with Gaussian states that stays where it is, and finds how many states there are.

    Parameters
    ----------
    n_states : int
        The most states; those that are not needed are merged away. It must be well above what is needed: if all remain,
        a warning says so.
    zeta : "auto" or float
        Power of the densities: how much a frame counts beside the frames around it. 1 takes frames for independent
        given their states; where they are not (movement, sensors), that makes too many states, nearly one per bout.
        ``"auto"`` goes by the autocorrelation time within the states of a first fit with 1; it gives about 1
        where frames are independent: see `modelweld.hmm.windows`. A small zeta can cost a rare state.
    kappa, eta, gamma, eta0 : float
        Concentrations: of staying, of moves, of the stick of states, of starts.
    prior_scale : "learned" or float
        Variance expected of every feature within a state. ``"learned"``: a share of each feature's variance, learned
        from the data, so that units do not matter. A number is in the units of X, squared.
    mean_precision : float
        What the prior mean, that of all frames, is worth, in frames.
    start : {"windows", "random"}
        Windows of frames pooled by their evidence (`window_start`), or one frame drawn for each state.
    window : int
        Frames of a window: the shortest thing that may be a state. Half of it gives more states, twice fewer.
    n_init : int
        Starts; the fit with the best bound is kept.
    max_iter : int
        Most steps between two changes of the states, and after the last.
    tol : float
        The ascent ends when a step gains less than this per frame.
    random_state : int, RandomState or None
        Draws the ends of windows, or the frames.

    Attributes
    ----------
    n_states_ : int
        States found, by decreasing number of frames.
    means_, covars_ : arrays (K, D), (K, D, D)
        Posterior expectations.
    transmat_, startprob_ : arrays (K, K), (K,)
        Posterior expectations, among the states found.
    zeta_ : float
        The power used.
    correlation_time_ : float
        Frames over which what is left within states is correlated; only with ``zeta="auto"``.
    prior_scale_ : array (D,)
        Variances expected within a state, as learned or given.
    bound_ : float
        Lower bound of the log evidence of the (tempered) data, in the units of X.
    history_ : tuple of Step
        Bound, number of states and change of these (merge, delete, drop, sort) of every step, in the units in which
        the ascent works; between two changes it never falls.
    converged_ : bool
        Whether the last ascent ended by itself.
    statistics_ : Summary
        Sufficient statistics of the states, expected counts, moments, moves (transitions), starts and visits: what
        fusion adds up.

    Notes
    -----
    Variational ascent with the posterior of the stick (no point estimate), merges and deletions; the statistics of a
    fitted model determine everything it answers (`from_statistics`). `score` is the log likelihood of the Student-t
    predictive densities: plain Gaussians at the posterior means fail on new data where states are small.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (n, 2)) for m, n in [(0, 80), (8, 70), (0, 50), (-8, 40)]])
    >>> model = StickyHDPHMM(n_states=10, random_state=0).fit(X)
    >>> model.n_states_, model.predict(X)[[0, 100, 180, 230]].tolist()
    (3, [0, 1, 0, 2])
    """

    def __init__(
        self,
        n_states: int = 40,
        *,
        zeta: float | Literal["auto"] = "auto",
        kappa: float = 10.0,
        eta: float = 0.5,
        gamma: float = 5.0,
        eta0: float = 5.0,
        prior_scale: float | Literal["learned"] = "learned",
        mean_precision: float = windows.MEAN_PRECISION,
        start: Literal["windows", "random"] = "windows",
        window: int = 20,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_states = n_states
        self.zeta = zeta
        self.kappa = kappa
        self.eta = eta
        self.gamma = gamma
        self.eta0 = eta0
        self.prior_scale = prior_scale
        self.mean_precision = mean_precision
        self.start = start
        self.window = window
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The setting of the SPAHM paper's study of movements, completed where the paper is silent or improper.

        At most 20 states, kappa 10, eta 0.5, gamma 5; a unit covariance expected of every state **in the units of X**,
        with D + 2 degrees of freedom (the paper's one is no distribution); starts from randomly drawn frames.

        Examples
        --------
        >>> StickyHDPHMM.paper(random_state=3).prior_scale
        1.0
        """
        setting = {"n_states": 20, "zeta": 1.0, "prior_scale": 1.0, "start": "random"}
        return cls(**{**setting, "mean_precision": PAPER_MEAN_PRECISION, **changes})

    @classmethod
    def from_statistics(cls, statistics: Summary, *, share: float | None = None, **settings: Any) -> Self:
        """A fitted model from what states' frames, moves and starts add up to: one step, no data.

        Parameters
        ----------
        statistics : Summary
            Of a fitted model, or of several, added through a matching.
        share : float, optional
            Scale of the prior as a share of each feature's variance, if `prior_scale` is "learned" and this is what
            was learned; default: learned from the statistics.
        **settings
            As for the class; zeta must be a number.
        """
        model = cls(**settings)
        check_settings(model)
        if model.zeta == "auto":
            raise InputError("statistics do not tell zeta: give a number.")
        if share is not None and not (is_number(share) and 0 < share < np.inf):
            raise InputError(f"share is a positive number; found {share!r}.")
        return model._publish(statistics, float(model.zeta), share)

    def fit(self, X: ArrayLike, lengths: ArrayLike | None = None) -> Self:
        """Find states and all their parameters.

        Parameters
        ----------
        X : array (T, D)
            Frames, sequences one below the other. The order of sequences does not matter.
        lengths : sequence of int, optional
            Frames of each sequence; default: X is one.
        """
        check_settings(self)
        given = check_sequences(X, lengths).in_canonical_order()
        centre, unit = given.units()
        scaled = Sequences((given.frames - centre) / unit, given.offsets)
        random = check_random_state(self.random_state)
        seeds = [int(random.randint(2**31 - 1)) for _ in range(self.n_init)]
        if self.zeta == "auto":
            self.correlation_time_ = self._correlation_time(scaled, unit, seeds[0])
            zeta = windows.power(self.correlation_time_)
        else:
            zeta = float(self.zeta)
        courses = [self._begin(scaled, unit, zeta, seed) for seed in seeds]
        for course in courses:
            course.run(self.max_iter, self.tol * len(scaled.frames))
        best = max(courses, key=lambda course: course.point.bound)
        statistics = best.point.statistics
        self._publish(
            Summary.of(statistics.take(statistics.by_size), centre, unit), zeta, float(best.point.prior.scale[0])
        )
        self.bound_ = best.point.bound - zeta * len(given.frames) * float(np.log(unit).sum())
        self.history_ = tuple(best.history)
        self.converged_ = best.converged
        if not self.converged_:
            what = f"no step gained less than tol among the last {self.max_iter}: raise max_iter or tol."
            warn_user(what, ConvergenceWarning)
        warn_if_all_used(self.n_states_, self.n_states, "so that there may be more of them: raise n_states")
        return self

    def predict(self, X: ArrayLike, lengths: ArrayLike | None = None) -> Index:
        """The most probable path (Viterbi), as in the fit: with tempered densities."""
        given = self._scale(X, lengths)
        rows = self._posterior.rows
        return most_probable(rows.log_start, rows.log_move, self._log_density(given), given.offsets)

    def predict_proba(self, X: ArrayLike, lengths: ArrayLike | None = None) -> Array:
        """Posterior probabilities (T, K) of states, as in the fit: with tempered densities."""
        given = self._scale(X, lengths)
        rows = self._posterior.rows
        return forward_backward(rows.log_start, rows.log_move, self._log_density(given), given.offsets).states

    def score(self, X: ArrayLike, lengths: ArrayLike | None = None) -> float:
        """Log likelihood of sequences, all frames counting fully: Student-t predictive densities."""
        given = self._scale(X, lengths)
        log_density = self._posterior.emissions.log_predictive(given.frames) - np.log(self._unit).sum()
        with np.errstate(divide="ignore"):
            log_start, log_move = np.log(self.startprob_), np.log(self.transmat_)
        return forward_backward(log_start, log_move, log_density, given.offsets).log_sum

    def _begin(self, scaled: Sequences, unit: Array, zeta: float, seed: int) -> Course:
        """The start of an ascent."""
        prior, at = self._first_prior(unit, windows.FIRST_SHARE), self._concentrations
        setting = Setting(zeta, at, self.prior_scale == "learned")
        problem = Problem(features(scaled.frames), scaled.offsets, setting)
        rng = np.random.default_rng(seed)
        if self.start == "random":
            statistics = windows.draw_statistics(problem.features, self.n_states, rng)
        else:
            statistics = windows.pool_statistics(problem, self.n_states, self.window, prior, rng)
        return Course(problem, Point(statistics, Sticks.first(len(statistics.starts), at), prior))

    def _first_prior(self, unit: Array, share: float) -> Prior:
        """The prior of the scale that was given or, where it is learned, of a share of the features' variances."""
        scale = np.full(len(unit), share) if self.prior_scale == "learned" else float(self.prior_scale) / unit**2
        return Prior(scale, self.mean_precision)

    def _correlation_time(self, scaled: Sequences, unit: Array, seed: int) -> float:
        """The autocorrelation time within the states of a fit with zeta 1, which need not be led to its end."""
        course = self._begin(scaled, unit, 1.0, seed)
        course.glance(PILOT_GAIN * len(scaled.frames))
        point = course.point
        warn_if_all_used(len(point.statistics.starts), self.n_states, PILOT)
        at = Posterior.of(point.statistics, point.sticks, point.prior, Setting(1.0, self._concentrations, False))
        path = at.paths(features(scaled.frames), scaled.offsets, 1.0).states.argmax(axis=1)
        return windows.autocorrelation_time(scaled.frames, path, scaled.offsets, at.emissions)

    def _publish(self, summary: Summary, zeta: float, share: float | None) -> Self:
        """All that can be asked, from statistics: also what `fit` ends with, so that both give the same model."""
        centre, unit, statistics, at = summary.centre, summary.unit, summary.statistics(), self._concentrations
        prior = self._first_prior(unit, share or windows.FIRST_SHARE)
        if self.prior_scale == "learned" and share is None:
            prior = learn_prior(zeta * statistics.sums, prior)
        order = statistics.by_size  # sticks are for states by size, whatever order they are kept in
        back = np.append(np.argsort(order), len(order))
        sorted_ = statistics.take(order)
        sticks = Sticks.first(len(order), at).settle(stack_counts(sorted_.moves, sorted_.starts), at)
        fitted = Posterior.of(statistics, sticks, prior, Setting(zeta, at, False), back)
        self._posterior, self._centre, self._unit = fitted, centre, unit
        self.statistics_, self.zeta_ = summary, zeta
        self.n_states_, self.n_features_in_ = fitted.emissions.mean.shape
        self.means_ = centre + unit * fitted.emissions.mean
        self.covars_ = fitted.emissions.covariance * unit[:, None] * unit
        self.transmat_, self.startprob_ = fitted.rows.mean[:-1], fitted.rows.mean[-1]
        self.prior_scale_ = prior.scale * unit**2
        return self

    def _scale(self, X: ArrayLike, lengths: ArrayLike | None) -> Sequences:
        check_is_fitted(self, "means_")
        given = check_sequences(X, lengths, features=self.n_features_in_)
        return Sequences((given.frames - self._centre) / self._unit, given.offsets)

    def _log_density(self, given: Sequences) -> Array:
        return np.asarray(self.zeta_ * (features(given.frames) @ self._posterior.emissions.coefficients().T))

    @property
    def _concentrations(self) -> Concentrations:
        return Concentrations(float(self.eta), float(self.kappa), float(self.eta0), float(self.gamma))


SETTINGS = ("kappa", "eta", "gamma", "eta0", "mean_precision")
"""What a written model takes over, where all sites agree; else it has the class's defaults."""


def read(
    model: StickyHDPHMM,
    *,
    known: Literal["variance", "weight", "equally"] = "variance",
    effective: Literal["frames", "visits"] = "frames",
    features: Sequence[str] | None = None,
) -> LocalModel:
    """States' means and covariances, and how often the chain starts, moves and stays; nothing else need be said.

    Parameters
    ----------
    model : fitted StickyHDPHMM
        It remembers all counts.
    known : {"variance", "weight", "equally"}
        How it is stated how well each state is known, which decides how states can be matched:

        - ``"variance"``: squared standard errors beside the means. For the default, means with standard errors, a
          site's states being possibly fragments of one: ``fuse(sites)``.
        - ``"equally"``: nothing. The paper's matching, by means alone:
          ``fuse(sites, search=Search(splits=False))``, or ``fuse(sites, preset="paper")`` to the letter.
        - ``"weight"``: numbers beside means and covariances, for matching by both:
          ``fuse(sites, {("means", "covariances"): Moments()})``.
    effective : {"frames", "visits"}
        What a state's mean is worth: zeta times its frames, or its visits, the bouts after which the chain came back
        to it. Frames of a movement are far from independent, so that with zeta 1 the former is too sure; with
        ``zeta="auto"`` it is what the correlations within bouts leave. Visits are the strictest: what a bout is like
        as a whole may differ, too.
    features : sequence of str, optional
        Names of the features.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.hmm import StickyHDPHMM
    >>> rng = np.random.default_rng(0)
    >>> sites = []
    >>> for order in ((0, 8, 0), (8, -8, 8)):
    ...     X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in order])
    ...     sites.append(StickyHDPHMM(n_states=10, random_state=0).fit(X))
    >>> fused = modelweld.fuse(sites).model()
    >>> sorted(fused.means_[:, 0].round().astype(int).tolist())
    [-8, 0, 8]
    """
    if not hasattr(model, "statistics_"):
        raise InputError("this StickyHDPHMM is not fitted: fit it first.")
    check_choice("known", known, ("variance", "weight", "equally"))
    check_choice("effective", effective, ("frames", "visits"))
    sums = model.statistics_
    counts = model.zeta_ * sums.counts
    learned = model.prior_scale == "learned"
    share = float(model.prior_scale_[0] / sums.unit[0] ** 2)  # of features' variances
    scale = {"share": share} if learned else {"prior_scale": float(model.prior_scale)}
    local = hmm(
        sums.moves,
        sums.starts,
        counts,
        {"means": sums.means, "covariances": sums.covariances},
        counted=True,
        features=features,
        facts={**{name: getattr(model, name) for name in SETTINGS}, "zeta": model.zeta_, **scale},
    )
    worth = np.maximum(counts if effective == "frames" else sums.visits, FEWEST_POINTS)
    if known == "variance":
        return local.with_(variance={"means": diagonals(model.covars_) / worth[:, None]})
    weight = {"means": worth, "covariances": worth} if known == "weight" else {}
    return local.with_(variance={}, weight=weight)


def write(local: LocalModel, like: str) -> StickyHDPHMM:
    """A StickyHDPHMM: one step from added statistics.

    The scale of the prior is that of all sites where they agree; else it is learned again, from the statistics, as it
    is behind scalers, whose units a given scale does not know. So with zeta; where it differs between sites it is their
    average by frames, effective frames over starts and moves.
    """
    if "means" not in local.arrays or not local.facts.get("counted"):
        raise InputError("a StickyHDPHMM needs Gaussian emissions and numbers of frames: read(model, lengths=...).")
    means, moves, starts, counts = (np.asarray(local.arrays[name]) for name in ("means", "moves", "starts", "counts"))
    facts = local.facts
    # every frame is a start or an arrival; not quite where small numbers were dropped at export
    frames = float(moves.sum() + starts.sum())
    zeta = facts.get("zeta", min(float(counts.sum()) / max(frames, 1.0), 1.0))
    settings = {name: facts[name] for name in SETTINGS if name in facts}
    if "prior_scale" in facts and "undone" not in facts:
        settings["prior_scale"] = facts["prior_scale"]
    if not is_number(zeta) or not 0 < zeta <= 1:
        raise InputError(f"fact 'zeta' of a StickyHDPHMM is a number above 0, at most 1; found {zeta!r}.")
    return StickyHDPHMM.from_statistics(
        Summary(counts / zeta, means, full_covariances(local), moves, starts),
        share=facts.get("share"),
        zeta=zeta,
        **settings,
    )
