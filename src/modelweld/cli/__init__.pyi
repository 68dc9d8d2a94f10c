"""Modules and functions of the command line, for type checkers; `__init__.py` loads each when it is asked for."""

from modelweld.cli import arguments as arguments
from modelweld.cli import demonstration as demonstration
from modelweld.cli import paths as paths
from modelweld.cli import points as points
from modelweld.cli import table_output as table_output
from modelweld.cli.commands import app as app
from modelweld.cli.commands import main as main
