"""Gaussian LDA (Das, Zaheer, Dyer, ACL 2015): topics are Gaussians among word vectors; collapsed Gibbs sampling.

A token w of document d goes to topic k with probability proportional to

    (n_dk + alpha) t(x_w; nu_k - D + 1, mu_k, Psi_k (kappa_k + 1) / (kappa_k (nu_k - D + 1)))

where t is Student's density and mu, kappa, Psi, nu are the normal-inverse-Wishart posterior of the vectors of the
topic's other tokens. Every token costs K quadratic forms of D^2 products; inverse and determinant of Psi follow a token
that comes or goes by rank-one updates, and are computed afresh before every iteration. Compiled functions are written
in loops, which compile in a second; products of arrays take ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class NormalInverseWishart:
    """What is known of a topic before its tokens are seen; scale is that of Psi, a multiple of the identity."""

    mean: np.ndarray
    kappa: float
    nu: float
    scale: float


def authors_prior(vectors: np.ndarray) -> NormalInverseWishart:
    """As in the authors' program: mean of the vectors, kappa .1, nu = D, Psi = 3 D I."""
    D = vectors.shape[1]
    return NormalInverseWishart(vectors.mean(0), 0.1, float(D), 3.0 * D)


def matched_prior(vectors: np.ndarray) -> NormalInverseWishart:
    """The same with Psi on the scale of the vectors: a topic's covariance is expected to be half of theirs."""
    D = vectors.shape[1]
    nu = D + 2.0  # the smallest whole number at which a covariance has an expectation, Psi / (nu - D - 1) = Psi
    return NormalInverseWishart(vectors.mean(0), 0.1, nu, 0.5 * float(vectors.var(0).mean()))


@dataclass(frozen=True)
class Tokens:
    """Tokens in order: their words and documents, by number."""

    words: np.ndarray
    documents: np.ndarray


def gaussian_lda(
    tokens: Tokens, vectors: np.ndarray, K: int, prior: NormalInverseWishart, *, iterations: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Topic of every token after some iterations, and the topics' means; alpha = 1 / K as in the authors' program."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, K, len(tokens.words))
    documents = int(tokens.documents.max()) + 1
    vectors = np.ascontiguousarray(vectors, dtype=np.float64)
    for _ in range(iterations):
        state = posterior(vectors[tokens.words], topics, K, prior)
        in_document = np.zeros((documents, K))
        np.add.at(in_document, (tokens.documents, topics), 1.0)
        draws = rng.random(len(topics))
        sweep(
            tokens.words, tokens.documents, topics, draws, vectors, in_document, *state, prior.nu - prior.kappa, 1 / K
        )
    return topics, posterior(vectors[tokens.words], topics, K, prior)[1]


def posterior(
    x: np.ndarray, topics: np.ndarray, K: int, prior: NormalInverseWishart
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of every topic: kappa, mean, inverse of Psi and its log determinant, from scratch."""
    D = x.shape[1]
    kappa, means, inverses, logs = np.empty(K), np.empty((K, D)), np.empty((K, D, D)), np.empty(K)
    for k in range(K):
        mine = x[topics == k]
        kappa[k] = prior.kappa + len(mine)
        means[k] = (prior.kappa * prior.mean + mine.sum(0)) / kappa[k]
        psi = prior.scale * np.eye(D) + mine.T @ mine
        psi += prior.kappa * np.outer(prior.mean, prior.mean) - kappa[k] * np.outer(means[k], means[k])
        inverses[k], logs[k] = np.linalg.inv(psi), np.linalg.slogdet(psi)[1]
    return kappa, means, inverses, logs


@njit(fastmath=True)
def quadratic(inverse, x, mean):
    """(x - mean)' A (x - mean) of a symmetric A, from its lower triangle."""
    total = 0.0
    for i in range(len(x)):
        row = 0.0
        for j in range(i):
            row += inverse[i, j] * (x[j] - mean[j])
        total += (x[i] - mean[i]) * (2.0 * row + inverse[i, i] * (x[i] - mean[i]))
    return total


@njit
def moved(kappa, means, inverses, logs, k, x, step):
    """A token comes to a topic (step 1) or leaves it (step -1): Psi changes by step kappa / (kappa + step) d d'."""
    D = len(x)
    factor = step * kappa[k] / (kappa[k] + step)
    along, length = np.zeros(D), 0.0
    for i in range(D):
        for j in range(D):
            along[i] += inverses[k, i, j] * (x[j] - means[k, j])
        length += (x[i] - means[k, i]) * along[i]
    stretch = 1.0 + factor * length
    for i in range(D):
        for j in range(D):
            inverses[k, i, j] -= along[i] * along[j] * (factor / stretch)
    for i in range(D):
        means[k, i] += (x[i] - means[k, i]) * (step / (kappa[k] + step))
    logs[k] += math.log(stretch)
    kappa[k] += step


@njit
def sweep(words, documents, topics, draws, vectors, in_document, kappa, means, inverses, logs, surplus, alpha):
    """One iteration over all tokens, in place; nu = kappa + surplus."""
    K, D = means.shape
    logits = np.empty(K)
    for t in range(len(words)):
        x, document = vectors[words[t]], in_document[documents[t]]
        document[topics[t]] -= 1
        moved(kappa, means, inverses, logs, topics[t], x, -1.0)
        for k in range(K):
            freedom = kappa[k] + surplus - D + 1
            shrink = kappa[k] / (kappa[k] + 1)
            logits[k] = (
                math.log(document[k] + alpha)
                + math.lgamma((freedom + D) / 2)
                - math.lgamma(freedom / 2)
                - 0.5 * logs[k]
                + 0.5 * D * math.log(shrink)
                - 0.5 * (freedom + D) * math.log1p(shrink * quadratic(inverses[k], x, means[k]))
            )
        topics[t] = drawn(logits, draws[t])
        document[topics[t]] += 1
        moved(kappa, means, inverses, logs, topics[t], x, 1.0)


@njit
def drawn(logits, draw):
    """The entry in which a number between 0 and 1 falls, with chances proportional to exp(logits); overwrites them."""
    largest = logits.max()
    total = 0.0
    for k in range(len(logits)):
        total += math.exp(logits[k] - largest)
        logits[k] = total
    for k in range(len(logits)):
        if draw * total <= logits[k]:
            return k
    return len(logits) - 1
