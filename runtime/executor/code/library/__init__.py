"""The modules that a graph's code may import, as tables of names and values."""

from __future__ import annotations

from typing import Any

from sgc.ir.code_names import OPTIONAL
from sgc.runtime.executor.code.library.collections_names import COLLECTIONS
from sgc.runtime.executor.code.library.dataclasses_names import DATACLASSES, ENUM, TYPING
from sgc.runtime.executor.code.library.functions_names import (
    BISECT,
    COPY,
    FUNCTOOLS,
    GRAPHLIB,
    HEAPQ,
    OPERATOR,
)
from sgc.runtime.executor.code.library.itertools_names import ITERTOOLS
from sgc.runtime.executor.code.library.json_names import JSON
from sgc.runtime.executor.code.library.math_names import MATH
from sgc.runtime.executor.code.library.number_names import (
    DECIMAL,
    FRACTIONS,
    RANDOM,
    STATISTICS,
)
from sgc.runtime.executor.code.library.pydantic_names import PYDANTIC
from sgc.runtime.executor.code.library.re_names import RE
from sgc.runtime.executor.code.library.record_names import AST, CSV, DATETIME, IO
from sgc.runtime.executor.code.library.text_names import (
    BASE64,
    DIFFLIB,
    HASHLIB,
    HTML,
    SHLEX,
    STRING,
    TEXTWRAP,
    UNICODEDATA,
    URLLIB_PARSE,
    UUID,
)

TABLES: dict[str, dict[str, Any]] = {
    "ast": AST,
    "base64": BASE64,
    "bisect": BISECT,
    "collections": COLLECTIONS,
    "copy": COPY,
    "csv": CSV,
    "dataclasses": DATACLASSES,
    "datetime": DATETIME,
    "decimal": DECIMAL,
    "difflib": DIFFLIB,
    "enum": ENUM,
    "fractions": FRACTIONS,
    "functools": FUNCTOOLS,
    "graphlib": GRAPHLIB,
    "hashlib": HASHLIB,
    "heapq": HEAPQ,
    "html": HTML,
    "io": IO,
    "itertools": ITERTOOLS,
    "json": JSON,
    "math": MATH,
    "operator": OPERATOR,
    "pydantic": PYDANTIC,
    "random": RANDOM,
    "re": RE,
    "shlex": SHLEX,
    "statistics": STATISTICS,
    "string": STRING,
    "textwrap": TEXTWRAP,
    "typing": TYPING,
    "unicodedata": UNICODEDATA,
    "urllib": {},
    "urllib.parse": URLLIB_PARSE,
    "uuid": UUID,
}


def library_value(module: str, name: str) -> Any:
    """The value of a name in a module."""
    value = TABLES[module][name]
    return value() if module in OPTIONAL else value
