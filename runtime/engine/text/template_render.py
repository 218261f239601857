"""Renders a chat template in the same sandbox and with the same helpers as transformers.

Untrusted templates run in a process of their own (`template_child.py`): the sandbox protects
Python's internals, but does not limit time or memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from sgc.runtime.engine.text.template import Message, ProbeError, Render

MAX_SOURCE_CHARS = 256 * 1024
MAX_OUTPUT_CHARS = 1024 * 1024


def renderer(source: str, tokens: dict[str, str]) -> Render:
    """A function that renders conversations; `tokens`: bos_token, eos_token and their texts."""
    if len(source) > MAX_SOURCE_CHARS:
        raise ProbeError(f"the template is longer than {MAX_SOURCE_CHARS} characters")
    try:
        template = _environment().from_string(source)
    except Exception as error:
        raise ProbeError(f"the template cannot be compiled: {error}") from error

    def render(
        messages: Sequence[Message],
        add_generation_prompt: bool,
        tools: Sequence[Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> str:
        values: dict[str, Any] = {
            **(more or {}),
            "messages": [dict(message) for message in messages],
            "tools": tools,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **tokens,
        }
        try:
            text = template.render(values)
        except Exception as error:  # a template can raise anything
            raise ProbeError(f"the template failed: {error}") from error
        if len(text) > MAX_OUTPUT_CHARS:
            raise ProbeError(f"the template renders more than {MAX_OUTPUT_CHARS} characters")
        return text

    return render


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    environment.globals["namespace"] = _Namespace
    return environment


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks replies for training; it renders its content."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(Namespace):
    """Refuses names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        values = dict(*rest, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a template may not set the attribute {name!r}")


def _raise_exception(message: str) -> None:
    raise jinja2.exceptions.TemplateError(message)


def _strftime_now(format_: str) -> str:
    return datetime.now().strftime(format_)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
