"""Starts a module of the engine: `python -P start.py SGC_FOLDER sgc.runtime.engine.serve …`.

`python -m` would run `sgc/__init__.py` first, which imports the whole language: a tenth of a second
in each of an engine's processes, one after the other. The engine uses none of it (`test_layers.py`
checks that), so `sgc` is registered here without running it. It comes from the given folder,
whatever is on the import path.

While modules are imported, garbage collection finds nothing and takes a tenth of the time; so it is
off until `garbage.py` turns it on.
"""

from __future__ import annotations

import gc
import importlib.util
import runpy
import sys


def main() -> None:
    gc.disable()
    folder, name = sys.argv[1:3]
    del sys.argv[1:3]
    spec = importlib.util.spec_from_file_location(
        "sgc", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None
    sys.modules["sgc"] = importlib.util.module_from_spec(spec)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
