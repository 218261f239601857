"""Packages that not every installation has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sgc.errors import SgcError


def needed(module: str, what: str, package: str = "", instead: str = "") -> Any:
    """Imports a module; raises SgcError, which says what to install, where it is not there.

    what: that needs it; package: where it is not called like the module; instead: a way without.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = package or module
        raise SgcError(
            f"{what} needs the package {package}, which is not installed",
            hint=f"pip install {package}{instead}",
        ) from error
