"""Reads YAML 1.2, with the line of each mapping: `yes` is a text, and no key may be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sgc.errors import UsageError

MAX_BYTES = 16 << 20
_QUOTES = "a text with ': ' or ' #' in it needs quotes, and between braces one with , ? [ ] { }"
MAX_VALUES = 1_000_000  # an alias repeats its values, and an alias of aliases multiplies them


class Located(dict[str, Any]):
    """A mapping with the line that it begins in, from 1, and the lines of its keys."""

    line = 1


def load_yaml(text: str, name: str) -> Any:
    """The value of a document. Raises UsageError that names the line."""
    try:
        import yaml
    except ImportError as error:
        raise UsageError(
            f"{name}: reading YAML needs PyYAML", hint="pip install 'sgc[evals]', or write JSON"
        ) from error
    try:
        found = yaml.load(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        is_form = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
        raise UsageError(
            f"{name}{line}: not valid YAML: {error.problem}", hint=_QUOTES if is_form else ""
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError) as error:
        # PyYAML raises these for a number of too many digits, or an invalid value of a !!tag.
        raise UsageError(f"{name}: not valid YAML: {error}") from error
    _refuse_bomb(found, name)
    return found


def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        pass

    # Of YAML 1.1's implicit types only those of JSON stay: `no`, `12:30` and `2024-01-01` are
    # texts.
    Loader.yaml_implicit_resolvers = {
        first: [rule for rule in rules if rule[0] in ("tag:yaml.org,2002:null", _MERGE)]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    number = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
    for tag, pattern, first in (
        ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", "[-+]?[0-9]+", "-+0123456789"),
        ("float", number, "-+0123456789."),
    ):
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first)
        )
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
    Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
    return Loader


_MERGE = "tag:yaml.org,2002:merge"


def _mapping(loader: Any, node: Any) -> Iterator[Located]:
    from yaml.constructor import ConstructorError

    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == _MERGE:
            continue
        if not isinstance(key.value, str):
            raise ConstructorError(
                problem="a key is a text, found a list or an object", problem_mark=key.start_mark
            )
        if key.value in seen:
            raise ConstructorError(
                problem=f"{key.value!r} comes twice", problem_mark=key.start_mark
            )
        seen.add(key.value)
    found = Located()
    found.line = node.start_mark.line + 1
    yield found
    found.update({str(key): value for key, value in loader.construct_mapping(node).items()})


def _refuse_bomb(value: Any, name: str) -> None:
    """Raises UsageError for a document that its aliases make too large, or endless."""
    n_left, waiting = MAX_VALUES, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            n_left -= len(each) + 1
            if n_left < 0:
                raise UsageError(f"{name}: more than {MAX_VALUES:,} values, with its aliases")
            waiting.extend(each.values() if isinstance(each, dict) else each)
