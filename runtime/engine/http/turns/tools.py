"""Reads `tools`, `tool_choice` and `parallel_tool_calls`, and makes the grammar of the calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sgc.runtime.engine.guides.grammar import (
    MAX_GRAMMAR_SCHEMAS_CHARS,
    ConstraintError,
    check_constraint,
    grammar_of,
)
from sgc.runtime.engine.guides.wrong_schemas import mistake_in
from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.fields import Fields
from sgc.runtime.engine.http.turns.formats import CallFormat

MAX_TOOLS = 128
MAX_CALLS = 16  # in one reply, so that a model that repeats itself comes to an end
MAX_NAME_CHARS = 128
ANY_OBJECT: Json = {"type": "object"}
_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{1,{MAX_NAME_CHARS}}}")
# Annotations of a schema, which restrict no value; a property may have one of these names.
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$schema", "$comment"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "enum"})


@dataclass(frozen=True, slots=True)
class Function:
    """schema: of its arguments, as text, which constraints enforce. told: the tool as the client
    gave it, for the chat template. where: its place in the request."""

    name: str
    schema: str
    told: Json
    where: str
    is_strict: bool


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of one request, and which calls it wants.

    must: whether the reply must be a call. callable: the functions that may be called; empty if
    tool_choice is none.
    """

    told: tuple[Function, ...]
    callable: tuple[Function, ...]
    must: bool
    has_many: bool


def read_tools(fields: Fields, form: CallFormat | str) -> Tools | None:
    """The tools of a request for a chat, None if it gives none; raises HttpError.

    form: of the model's calls, or the reason why it makes none.
    """
    given = fields.get("tools")
    if given is not None and not isinstance(given, list):
        raise bad("tools must be a list of tools", "tools", "invalid_type")
    if not given:
        choice = fields.get("tool_choice")
        if choice not in (None, "none", "auto"):
            raise bad("tool_choice asks for a call, and there are no tools", "tool_choice")
        fields.boolean("parallel_tool_calls")
        return None
    if isinstance(form, str):
        raise bad(f"tools: {form}", "tools", "unsupported_parameter")
    if len(given) > MAX_TOOLS:
        raise bad(f"tools: {len(given)}, of at most {MAX_TOOLS}", "tools")
    told = tuple(_function(each, f"tools[{i}]") for i, each in enumerate(given))
    n_chars = sum(len(function.schema) for function in told)
    if n_chars > MAX_GRAMMAR_SCHEMAS_CHARS:
        message = f"tools: their schemas have {n_chars} characters without annotations, of at most"
        raise bad(f"{message} {MAX_GRAMMAR_SCHEMAS_CHARS}", "tools")
    for function in told:
        _check_bounds(function)
    names = [function.name for function in told]
    for i, name in enumerate(names):
        if name in names[:i]:
            where = f"tools[{i}].function.name"
            raise bad(f"{where}: there is another tool named {name!r}", where)
    callable_, must = _chosen(fields, told)
    choice = fields.get("tool_choice")
    is_named = isinstance(choice, dict) and choice["type"] == "function"
    may_be_many = fields.boolean("parallel_tool_calls", default=True)
    many = may_be_many and not is_named and not form.is_single
    return _held(Tools(told, callable_, must, many), form)


def _function(tool: Any, where: str) -> Function:
    if not isinstance(tool, dict):
        raise bad(f"{where} must be an object with type and function", where, "invalid_type")
    fields = Fields(tool, f"{where}.")
    kind = fields.text("type", "function")
    if kind != "function":
        message = f"{where}.type: this engine calls tools of type function, found {kind[:40]!r}"
        raise bad(message, f"{where}.type", "unsupported_parameter")
    fields.check_known({"type", "function"}, {})
    if "function" not in fields:
        raise bad(f"{where}.function is missing", f"{where}.function", "invalid_type")
    inner = fields.object("function")
    inner.check_known({"name", "description", "parameters", "strict"}, {})
    name = inner.text("name")
    if not _NAME.fullmatch(name):
        expected = f"1 to {MAX_NAME_CHARS} letters, digits, _, . or -"
        raise bad(
            f"{inner.where}name must be {expected}, found {name[:80]!r}", f"{inner.where}name"
        )
    inner.text("description")
    is_strict = inner.boolean("strict")
    schema = _schema(inner, f"{inner.where}parameters")
    # Templates expect fields that OpenAI's clients may leave out.
    defaults = {"description": "", "parameters": {"type": "object", "properties": {}}}
    given = {key: value for key, value in tool["function"].items() if value is not None}
    told = {"type": "function", "function": {"name": name, **defaults, **given}}
    return Function(name, schema, told, f"{inner.where}parameters", is_strict)


def _schema(fields: Fields, where: str) -> str:
    """The schema of the arguments, which must be an object's."""
    fields.object("parameters")
    bare = _bare(fields.get("parameters") or ANY_OBJECT)
    if bare.get("type", "object") != "object":
        message = f"{where}: arguments are an object, found type {str(bare['type'])[:40]!r}"
        raise bad(message, f"{where}.type")
    return json.dumps({**bare, "type": "object"}, ensure_ascii=False)


def _check_bounds(function: Function) -> None:
    """Raises HttpError for a schema beyond a bound, strict or not."""
    try:
        grammar_of("json_schema", function.schema)
    except ConstraintError as error:
        raise bad(f"{function.where}: {error}", function.where) from error


def _held(tools: Tools, form: CallFormat) -> Tools:
    """The tools; if a schema cannot be enforced, the arguments may be any object. Raises HttpError
    if such a tool is strict, or its schema is wrong."""
    if not tools.callable:
        return tools
    grammar = calls_grammar(form, tools)
    try:
        grammar_of("grammar", grammar)
    except ConstraintError as error:
        raise bad(f"tools: {error}", "tools") from error
    if not _refusal("grammar", grammar):
        return tools
    found = replace(tools, callable=tuple(map(_loosened, tools.callable)))
    if problem := _refusal("grammar", calls_grammar(form, found)):
        raise bad(f"tools: {problem}", "tools")
    return found


def _loosened(function: Function) -> Function:
    problem = _refusal("json_schema", function.schema)
    if not problem:
        return function
    mistake = mistake_in(json.loads(function.schema), problem)
    if mistake or function.is_strict:
        raise bad(f"{function.where}: {mistake or problem}", function.where)
    return replace(function, schema=json.dumps(ANY_OBJECT))


def _bare(schema: Any) -> Any:
    """The schema without annotations, which restrict nothing."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            found[key] = {name: _bare(each) for name, each in value.items()}
        elif key in _DATA:
            found[key] = value
        elif key not in _ANNOTATIONS:
            found[key] = _bare(value)
    return found


@lru_cache(maxsize=64)
def _refusal(field: str, text: str) -> str:
    try:
        check_constraint(field, text)
    except ConstraintError as error:
        return str(error)
    return ""


def _chosen(fields: Fields, told: tuple[Function, ...]) -> tuple[tuple[Function, ...], bool]:
    """The functions that may be called, and whether one must be."""
    choice = fields.get("tool_choice")
    if choice in (None, "auto", "none", "required"):
        return () if choice == "none" else told, choice == "required"
    where = "tool_choice"
    if not isinstance(choice, dict):
        expected = "none, auto, required, or an object that names a function"
        raise bad(f"tool_choice must be {expected}", where)
    named = fields.object(where)
    kind = named.text("type")
    if kind == "allowed_tools":
        return _allowed(named.object("allowed_tools"), told)
    if kind != "function":
        raise bad("tool_choice.type must be function or allowed_tools", f"{where}.type")
    return (_named(named, told),), True


def _allowed(fields: Fields, told: tuple[Function, ...]) -> tuple[tuple[Function, ...], bool]:
    fields.check_known({"mode", "tools"}, {})
    mode, where = fields.text("mode", "auto"), fields.where
    if mode not in ("auto", "required"):
        raise bad(f"{where}mode must be auto or required", f"{where}mode")
    given = fields.get("tools")
    if not isinstance(given, list) or not given or not all(isinstance(x, dict) for x in given):
        raise bad(f"{where}tools must be a list of tools", f"{where}tools", "invalid_type")
    each = [_named(Fields(tool, f"{where}tools[{i}]."), told) for i, tool in enumerate(given)]
    return tuple({function.name: function for function in each}.values()), mode == "required"


def _named(fields: Fields, told: Sequence[Function]) -> Function:
    fields.check_known({"type", "function"}, {})
    inner = fields.object("function")
    inner.check_known({"name"}, {})
    name = inner.text("name")
    for function in told:
        if function.name == name:
            return function
    known = ", ".join(function.name for function in told)[:400]
    where = f"{inner.where}name"
    raise bad(f"{where}: there is no tool {name[:80]!r}; the tools are {known}", where)


def calls_grammar(form: CallFormat, tools: Tools) -> str:
    """The grammar of the calls, from the first one's beginning to the reply's end."""
    rules: dict[str, list[str]] = {}  # from each schema to the functions that have it
    for function in tools.callable:
        rules.setdefault(function.schema, []).append(function.name)
    more = f"({_quoted(form.separator)} call){{0,{MAX_CALLS - 1}}}" if tools.has_many else ""
    begins, ends = (_quoted(text) if text else "" for text in (form.begins, form.ends))
    lines = [" ".join(filter(None, ("start:", begins, "call", more, ends)))]
    lines.append("call: " + " | ".join(f"call{i}" for i in range(len(rules))))
    for i, (schema, names) in enumerate(rules.items()):
        choice = " | ".join(_quoted(name) for name in names)
        around = _quoted(form.before), f"({choice})", _quoted(form.between), f"given{i}"
        lines.append(f"call{i}: {' '.join(around)} {_quoted(form.after)}")
        lines.append(f"given{i}: %json {schema}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
