"""Whether the parts of a loaded fusion can answer: families and prior are asked once, so that nothing fails later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import sum_by_atom
from modelweld.files.file_errors import AGAIN
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Key, Stack, stack_arrays
from modelweld.matching.result import Matching
from modelweld.matching.sets import stack_of
from modelweld.priors.beta_bernoulli import Prior


def check_answers(given: Sequence[LocalModel] | Sequence[Array], matchings: Mapping[str, Matching]) -> None:
    """Refuse families whose hyperparameters are of other values than the sites sent, and priors without odds."""
    for set_name, matching in matchings.items():
        for key in matching.families:
            try:
                stack = _stack(given, key, set_name, matchings)
            except KeyError as axis:
                raise InputError(f"{key!r} runs over {axis}, of which there is no matching. {AGAIN}") from None
            if not _answers(stack, key, matching):
                raise InputError(f"its family of {key!r} is not one of what the sites sent. {AGAIN}")
        if matching.prior is not None and not has_odds(matching.prior, len(matching.offsets) - 1):
            raise InputError(f"the prior of set {set_name!r} has no odds. {AGAIN}")


def has_odds(prior: Prior, J: int) -> bool:
    """Whether a prior knows the odds of every number of J groups, and who is an atom."""
    try:
        prior.is_atom(np.ones(1, dtype=np.int64), J)
        return bool(np.isfinite(prior.as_probability().steps(J)).all())
    except (TypeError, ValueError, ArithmeticError):  # a word where a number belongs
        return False


def _stack(
    given: Sequence[LocalModel] | Sequence[Array], key: Key, set_name: str, matchings: Mapping[str, Matching]
) -> Stack:
    models = [model for model in given if isinstance(model, LocalModel)]
    return stack_of(models, key, set_name, matchings) if models else stack_arrays(given)


def _answers(stack: Stack, key: Key, matching: Matching) -> bool:
    """Whether the family of this key takes and scores all of these values, and places them among the global ones."""
    if not len(stack.values):
        return True
    try:
        family = matching.families[key].seeing(stack)
        if family.misfit(stack) is not None:
            return False
        rows = family.rows(stack.values, stack.variance, stack.weight)
        wide = key not in matching.values or matching.values[key].shape[1:] == family.estimate(rows[:1]).shape[1:]
        if not wide or not np.isfinite(rows).all():
            return False
        sums = sum_by_atom(rows, matching.stacked_labels, len(matching.counts))
        return bool(np.isfinite(family.log_evidence(rows)).all() and np.isfinite(family.gain(rows[:1], sums)).all())
    except (TypeError, ValueError, ArithmeticError):  # words, shapes of other values, a frame without inverse
        return False
