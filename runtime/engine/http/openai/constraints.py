"""Constraints on a reply, as OpenAI's clients, vLLM's and SGLang's give them."""

from __future__ import annotations

import json
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import bad
from sgc.runtime.engine.http.fields import Fields
from sgc.runtime.engine.http.sampling import constrain, schema_text

ANY_OBJECT = '{"type": "object"}'
MAX_CHOICES = 1024
# vLLM's names; those of `structured_outputs` are the same without `guided_`.
GUIDED = frozenset({"guided_json", "guided_regex", "guided_choice", "guided_grammar"})
NAMES = GUIDED | {"structured_outputs", "response_format"}


def read_constraint(fields: Fields, sampling: pb.Sampling) -> None:
    """Adds the constraint of these fields; raises HttpError for more than one."""
    schema = schema_of(fields.object("response_format"))
    if schema is not None:
        constrain(sampling, "json_schema", schema, "response_format")
    _guide(fields, sampling, "guided_")
    inner = fields.object("structured_outputs")
    inner.check_known({"json", "regex", "choice", "grammar", "json_object"}, {})
    _guide(inner, sampling, "")
    if inner.boolean("json_object"):
        constrain(sampling, "json_schema", ANY_OBJECT, f"{inner.where}json_object")


def _guide(fields: Fields, sampling: pb.Sampling, prefix: str) -> None:
    for name in ("json", "regex", "choice", "grammar"):
        key = prefix + name
        if key not in fields:
            continue
        if name == "json":
            constrain(sampling, "json_schema", schema_text(fields, key), fields.where + key)
        elif name == "choice":
            constrain(sampling, "grammar", _choice(fields, key), fields.where + key)
        else:
            constrain(sampling, name, fields.text(key), fields.where + key)


def _choice(fields: Fields, name: str) -> str:
    """The grammar of one of several texts."""
    given: Any = fields.get(name)
    where = fields.where + name
    if not isinstance(given, list) or not given or not all(given):
        raise bad(f"{where} must be a list of texts, none of them empty", where, "invalid_type")
    if not all(isinstance(each, str) for each in given):
        raise bad(f"{where} must be a list of texts", where, "invalid_type")
    if len(given) > MAX_CHOICES:
        raise bad(f"{where}: {len(given)} choices, of at most {MAX_CHOICES}", where)
    return "start: " + " | ".join(json.dumps(each, ensure_ascii=False) for each in given)


def schema_of(form: Fields) -> str | None:
    """The schema of a response format; None for plain text."""
    kind = form.text("type", "text")
    if kind == "json_object":
        form.check_known({"type"}, {})
        return ANY_OBJECT
    if kind == "json_schema":
        form.check_known({"type", "json_schema"}, {})
        if "json_schema" not in form:
            where = f"{form.where}json_schema"
            raise bad(f"{where} is missing", where, "invalid_type")
        return named_schema(form.object("json_schema"))
    if kind != "text":
        expected = "text, json_object or json_schema"
        raise bad(f"{form.where}type must be {expected}", f"{form.where}type")
    return None


def named_schema(fields: Fields, *more: str) -> str:
    """The schema of an object with its name. more: other fields that it may have."""
    fields.check_known({"name", "description", "schema", "strict", *more}, {})
    fields.boolean("strict")
    fields.object("schema")
    return json.dumps(fields.get("schema") or {}, ensure_ascii=False)
