"""Puts the stand-in's modules where `import` finds them, and refuses names that they lack."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from sgc.errors import UsageError

ROOT = "sglang"


class ShimModule(ModuleType):
    """A module of the stand-in; reading a name that it lacks is an error that lists its names."""

    def __init__(self, name: str, names: Mapping[str, Any], doc: str | None) -> None:
        super().__init__(name, doc)
        self.__dict__.update(names)
        self.__file__ = __file__
        self.__path__: list[str] = []  # a package, so that imports of submodules reach `_finder`
        self.__spec__ = ModuleSpec(name, _finder, origin=__file__, is_package=True)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._lacks(name), name=name, obj=self)

    def _lacks(self, name: str) -> str:
        public = sorted(each for each in vars(self) if not each.startswith("_"))
        known = f"it has: {', '.join(public)}" if public else "it is empty"
        return f"sgc's stand-in for {self.__name__} has no {name!r}; {known}"


class _Finder(MetaPathFinder, Loader):
    """Called only for modules that `install` has not put into `sys.modules`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        parent, _, child = name.rpartition(".")
        if name == ROOT or name.startswith(ROOT + "."):
            module = sys.modules.get(parent)
            if isinstance(module, ShimModule):
                # No `name=`: with it, `from sglang import x` would hide the message.
                raise ModuleNotFoundError(module._lacks(child))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return sys.modules.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: modules are complete when they are made."""


_finder = _Finder()


def install() -> ModuleType:
    """Makes `import sglang` and its submodules mean sgc in this process; returns the module.

    Shadows an installed SGLang; raises UsageError if that is already imported. Calling it again
    does nothing.
    """
    there = sys.modules.get(ROOT)
    if isinstance(there, ShimModule):
        return there
    foreign = [name for name in sys.modules if name == ROOT or name.startswith(ROOT + ".")]
    if foreign:
        raise UsageError(
            f"{foreign[0]} is already imported from {_place_of(foreign[0])}",
            hint="call sgc.compat.sglang.install() before anything imports sglang",
        )
    from sgc.compat.sglang.modules import all_modules

    for name, (doc, names) in all_modules().items():
        _add(name, doc, names)
    sys.meta_path.insert(0, _finder)
    return sys.modules[ROOT]


def _add(name: str, doc: str | None, names: Mapping[str, Any]) -> None:
    """Makes a module and its parent packages; a package's own names win over submodules' names."""
    parent, _, child = name.rpartition(".")
    if parent and parent not in sys.modules:
        _add(parent, None, {})
    module = sys.modules.get(name)
    if module is None:
        module = sys.modules[name] = ShimModule(name, {}, doc)
        if parent:
            setattr(sys.modules[parent], child, module)
    module.__doc__ = doc or module.__doc__
    module.__dict__.update(names)


def _place_of(name: str) -> str:
    return str(getattr(sys.modules[name], "__file__", None) or "an unknown place")
