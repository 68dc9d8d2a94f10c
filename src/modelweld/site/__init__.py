"""What runs where the data lie: training, export; in `modelweld.site.private`, noise."""

from modelweld.site.export import Report, export
from modelweld.site.train import (
    Failure,
    FailureWarning,
    TrainedFusion,
    TrainingError,
    seed_of,
    train_and_fuse,
    train_site,
)

__all__ = [
    "Failure",
    "FailureWarning",
    "Report",
    "TrainedFusion",
    "TrainingError",
    "export",
    "seed_of",
    "train_and_fuse",
    "train_site",
]
