"""What the package brings, for type checkers; `__init__.py` reads the same list, and loads each name when asked for."""

from modelweld.core.beta_bernoulli import BetaBernoulli as BetaBernoulli
from modelweld.core.matching import Matching as Matching
from modelweld.core.prior import Prior as Prior
from modelweld.demo import metrics as metrics
from modelweld.demo import simulate as simulate
from modelweld.errors import ConvergenceWarning as ConvergenceWarning
from modelweld.errors import DuplicateWarning as DuplicateWarning
from modelweld.errors import InputError as InputError
from modelweld.errors import ModelweldWarning as ModelweldWarning
from modelweld.errors import NamesWarning as NamesWarning
from modelweld.errors import OutlierWarning as OutlierWarning
from modelweld.errors import SiteEffectWarning as SiteEffectWarning
from modelweld.estimator import SPAHM as SPAHM
from modelweld.families import *
from modelweld.files import load as load
from modelweld.fit.priors.birth_death import BirthDeath as BirthDeath
from modelweld.fit.priors.spectrum import Spectrum as Spectrum
from modelweld.fuse import fuse as fuse
from modelweld.fusion import Fusion as Fusion
from modelweld.groups.catalogue import name_groups as name_groups
from modelweld.groups.cells import fuse_cells as fuse_cells
from modelweld.groups.cells import label_components as label_components
from modelweld.groups.reruns import consensus as consensus
from modelweld.inputs.local_model import LocalModel as LocalModel
from modelweld.libraries import adapters as adapters
from modelweld.libraries import read as read
from modelweld.request import Search as Search
from modelweld.results.diagnostics import notes as notes
from modelweld.site.export import export as export
from modelweld.site.train import FailureWarning as FailureWarning
from modelweld.site.train import train_and_fuse as train_and_fuse

__version__: str
