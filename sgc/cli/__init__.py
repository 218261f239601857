"""The command line: `sgc compile`, `run`, `dump`, `explain`, `verify`, `serve`, `top`, `version`.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 error, 2 wrong usage,
130 interrupted.
"""

from sgc.cli.main import main

__all__ = ["main"]
