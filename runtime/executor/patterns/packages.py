"""Imports optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sgc.errors import SgcError


def needed(module: str, what: str, package: str = "", instead: str = "") -> Any:
    """Imports a module; if it is not installed, raises SgcError, which says what to install.

    what: the feature that needs it; package: its name, if not the module's; instead: an alternative
    to installing it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = package or module
        raise SgcError(
            f"{what} needs the package {package}, which is not installed",
            hint=f"pip install {package}{instead}",
        ) from error
