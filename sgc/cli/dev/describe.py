"""Prints as JSON which arguments a program takes, and those given on the command line.

`sgc dev` runs this module as a process of its own, so that it imports the program's current code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sgc.cli.main import cli
from sgc.cli.programs.loading import Given, signature_types
from sgc.cli.programs.source import load_function
from sgc.errors import SgcError

FAILED = "error"


def main(target: str, given: str) -> None:
    try:
        found = described(target, Given(**json.loads(Path(given).read_text(encoding="utf-8"))))
    except SgcError as error:
        found = {FAILED: str(error)}
    print(json.dumps(found, default=repr))


def described(target: str, given: Given) -> dict[str, Any]:
    function = load_function(target)
    types = signature_types(function)
    return {
        "name": function.name,
        "file": function.python.__code__.co_filename,
        "parameters": [
            {
                "name": each.name,
                "type": str(each.type),
                "default": each.default if each.has_default else None,
                "is_required": not each.has_default,
            }
            for each in function.signature.parameters
        ],
        "arguments": given.arguments(types) if given else {},
    }


if __name__ == "__main__":
    assert cli is not None  # the loader of programs knows the command line's own frames
    main(*sys.argv[1:])
