"""What modelweld raises and warns with, so that callers can tell our words from numpy's."""


class InputError(ValueError):
    """Something that was handed in cannot be fused: the message gives the rule, the fact and the remedy."""


class OutOfRangeError(InputError):
    """Some value is not finite, or too large to be squared."""


class ModelweldWarning(UserWarning):
    """Base of all warnings of this package."""


class ConvergenceWarning(ModelweldWarning):
    """The sweeps were stopped before one of them left every label unchanged."""
