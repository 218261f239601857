"""Generates the protobuf and gRPC modules in `proto/` from the `.proto` files beside them.

Run from the repository's root after a change: `.venv/bin/python tools/generate_proto.py`.
A test runs it with `--out` into a temporary folder and compares.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("sgir", "engine", "worker", "programs")
SERVICES = ("engine", "programs")


def generate(out: Path) -> None:
    """Writes the modules for every `.proto` under `out/sgc/proto`; raises on a protoc error."""
    import importlib.resources

    from grpc_tools import protoc

    google = str(importlib.resources.files("grpc_tools") / "_proto")
    for name in NAMES:
        flags = [f"-Isgc/proto={ROOT / 'proto'}", f"-I{google}"]
        flags += [f"--python_out={out}", f"--pyi_out={out}"]
        if name in SERVICES:
            flags.append(f"--grpc_python_out={out}")
        if protoc.main(["protoc", *flags, f"sgc/proto/{name}.proto"]) != 0:
            raise SystemExit(f"protoc failed on {name}.proto")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT)
    generate(parser.parse_args().out)


if __name__ == "__main__":
    sys.path = [entry for entry in sys.path if entry not in ("", str(ROOT))]
    main()
