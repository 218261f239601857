"""SGLang's `lang.chat_template`: templates as objects, looked up and registered by programs.

The named templates are SGLang's, from `executor/prompts/chat_templates.py`. Templates that a
program registers are found by the functions here, and by a `RuntimeEndpoint` made afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.interface.capabilities import ChatFormat, RoleFormat
from sgc.runtime.executor.prompts import chat_templates

__all__ = [
    "ChatTemplate",
    "ChatTemplateStyle",
    "chat_template_registry",
    "get_chat_template",
    "get_chat_template_by_model_path",
    "matching_function_registry",
    "register_chat_template",
    "register_chat_template_matching_function",
]

Matching = Callable[[str], str | None]


class ChatTemplateStyle(Enum):
    """LLAMA2: a first system message is part of the user message that follows it."""

    PLAIN = auto()
    LLAMA2 = auto()


@dataclass
class ChatTemplate:
    """The texts around each role's content. `chat_format`: the template in sgc's form."""

    name: str
    default_system_prompt: str | None
    role_prefix_and_suffix: Mapping[str, tuple[str, str]]
    stop_str: Sequence[str] = ()
    image_token: str = chat_templates.DEFAULT_IMAGE_TOKEN
    audio_token: str = "<audio>"
    style: ChatTemplateStyle = ChatTemplateStyle.PLAIN

    @property
    def chat_format(self) -> ChatFormat:
        # A role that a template does not know has nothing around its content.
        around = {"tool": ("", ""), **self.role_prefix_and_suffix}
        stop = (self.stop_str,) if isinstance(self.stop_str, str) else tuple(self.stop_str)
        return ChatFormat(
            roles={role: RoleFormat(*each) for role, each in around.items()},
            default_system=self.default_system_prompt or "",
            stop=stop,
            system_in_user=self.style is ChatTemplateStyle.LLAMA2,
            image_token=self.image_token,
        )

    def get_prefix_and_suffix(
        self, role: str, hist_messages: Sequence[Mapping[str, Any]]
    ) -> tuple[str, str]:
        """The texts around a message of `role` that comes after `hist_messages`."""
        prefix, suffix = self._around(role)
        if self.style is ChatTemplateStyle.LLAMA2:
            if role == "system" and not hist_messages:
                prefix = self._around("user")[0] + prefix
            elif role == "user" and len(hist_messages) == 1:
                prefix = prefix if hist_messages[0]["content"] is None else ""
        return prefix, suffix

    def get_prompt(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The messages as one text; a system message without content gets the default one."""
        parts: list[str] = []
        for index, message in enumerate(messages):
            role, content = message["role"], message["content"]
            if role == "system" and content is None:
                if self.default_system_prompt is None:
                    continue
                content = self.default_system_prompt
            prefix, suffix = self.get_prefix_and_suffix(role, messages[:index])
            parts += [prefix, str(content), suffix]
        return "".join(parts)

    def _around(self, role: str) -> tuple[str, str]:
        return self.role_prefix_and_suffix.get(role, ("", ""))


chat_template_registry: dict[str, ChatTemplate] = {}  # templates that programs registered
matching_function_registry: list[Matching] = []


def register_chat_template(template: ChatTemplate) -> None:
    """Registers a template by its name; it may replace a built-in one."""
    chat_template_registry[template.name] = template


def register_chat_template_matching_function(func: Matching) -> Matching:
    """Registers `func(model_path)`, which names a template or is None, after built-in rules."""
    matching_function_registry.append(func)
    return func


def get_chat_template(name: str) -> ChatTemplate:
    """The template of this name; raises UsageError if there is none."""
    if name in chat_template_registry:
        return chat_template_registry[name]
    try:
        return template_of(name, chat_templates.template_named(name))
    except UsageError as error:
        error.hint = f"use one of: {', '.join([*chat_template_registry, *chat_templates.names()])}"
        raise


def get_chat_template_by_model_path(model_path: str) -> ChatTemplate:
    """The template for a model's path; "default" for an unknown model."""
    name, _ = chat_templates.template_for(model_path)
    if name == chat_templates.DEFAULT:
        matched = (match(model_path) for match in matching_function_registry)
        name = next((found for found in matched if found is not None), name)
    return get_chat_template(name)


def template_of(name: str, chat: ChatFormat) -> ChatTemplate:
    """The template for a chat format of sgc."""
    around = {role: (each.prefix, each.suffix) for role, each in chat.roles.items()}
    if around.get("tool") == ("", ""):
        del around["tool"]
    return ChatTemplate(
        name=name,
        default_system_prompt=chat.default_system or None,
        role_prefix_and_suffix=around,
        stop_str=chat.stop,
        image_token=chat.image_token,
        style=ChatTemplateStyle.LLAMA2 if chat.system_in_user else ChatTemplateStyle.PLAIN,
    )


def name_of(chat: ChatFormat, model_path: str) -> str:
    """The name of a chat format in the table; "model" if it is the model's own."""
    likely = chat_templates.template_for(model_path)[0]
    for name in (likely, *chat_templates.names()):
        if chat_templates.template_named(name) == chat:
            return name
    return "model"
