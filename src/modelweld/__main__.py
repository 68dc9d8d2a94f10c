"""``python -m modelweld`` is the command line."""

from modelweld.cli import main

main()
