"""What pyproject.toml says of a wheel: that every file of the package comes along."""

from __future__ import annotations

import os
import tomllib
from fnmatch import fnmatch

from repository.rooms import ROOT


def test_every_file_of_the_package_is_in_a_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = ["*.py", *project["tool"]["setuptools"]["package-data"]["*"]]
    folders = os.walk(ROOT / "sgc", followlinks=True)
    names = [name for folder, _, files in folders for name in files if "__pycache__" not in folder]
    assert len(names) > 1000
    assert [n for n in names if not any(fnmatch(n, pattern) for pattern in patterns)] == []
