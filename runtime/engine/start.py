"""Starts a module of the engine: `python -P start.py SGC_FOLDER sgc.runtime.engine.serve …`.

`python -m` runs `sgc/__init__.py` first, and with it imports all that programs are written with:
a tenth of a second, in each of an engine's processes, one after the other. The engine uses
nothing of it (`test_layers.py` holds that), so here `sgc` is found and not run. It is that
of the folder given, whatever is on the import path.

While modules are imported Python would look through all of them again and again for garbage that
is not there, a tenth of the time; so it does not until `garbage.py` has it begin.
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
