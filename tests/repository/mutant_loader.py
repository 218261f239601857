"""A pytest plugin that runs the tests on a changed source: `-p mutant_loader`, and SGC_MUTANT.

SGC_MUTANT is JSON: file, old, new. No file on disk is changed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parents[2]


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text()
        assert text.count(MUTANT["old"]) == 1
        return compile(text.replace(MUTANT["old"], MUTANT["new"]), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != CHANGED:
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


MUTANT = json.loads(os.environ["SGC_MUTANT"])
CHANGED = ROOT / MUTANT["file"]
sys.meta_path.insert(0, _Finder())
