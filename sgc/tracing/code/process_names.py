"""Names of Python's modules that depend on the process; converted code reads them by operators."""

from __future__ import annotations

PYTHON, ZONE = "asks about its Python", "asks for the time zone"

_OF_PYTHON = """
base_exec_prefix base_prefix exec_prefix executable flags meta_path modules path path_hooks
path_importer_cache prefix warnoptions
"""
NAMES_OF_PROCESS: dict[str, dict[str, str]] = {
    "sys": {
        **dict.fromkeys(("argv", "orig_argv"), "reads its command line"),
        **dict.fromkeys(("stdin", "__stdin__"), "reads its input"),
        **dict.fromkeys(_OF_PYTHON.split(), PYTHON),
    },
    "time": dict.fromkeys(("altzone", "daylight", "timezone", "tzname"), ZONE),
}
