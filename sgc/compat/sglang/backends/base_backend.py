"""SGLang's base class of backends."""

from __future__ import annotations

from typing import Any

from sgc.compat.sglang.backends.sampling_params import SglSamplingParams
from sgc.compat.sglang.settings.chat_template import ChatTemplate, get_chat_template
from sgc.lang.choices import ChoicesDecision
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.prompts.chat_templates import DEFAULT


class _EveryEndpoint(type):
    """`isinstance(x, BaseBackend)` is true of every endpoint."""

    def __instancecheck__(cls, instance: object) -> bool:
        is_base = cls.__name__ == "BaseBackend"
        return isinstance(instance, Endpoint) if is_base else type.__instancecheck__(cls, instance)


class BaseBackend(metaclass=_EveryEndpoint):
    """The base class of every backend; a backend of one's own defines `generate` and any hooks.

    `s` is the stream that makes the request: `text_`, `messages_`, `images_`, `sid` and the like.
    """

    def __init__(self) -> None:
        self.support_concate_and_append = False
        self.chat_template = get_chat_template(DEFAULT)

    def get_model_name(self) -> str:
        raise NotImplementedError

    def get_chat_template(self) -> ChatTemplate:
        return self.chat_template

    def cache_prefix(self, prefix_str: str) -> None:
        """Called before a batch and by `f.cache()`, with a text that all runs begin with."""

    def uncache_prefix(self, rid: str) -> None:
        """Never called, as in SGLang; the same holds for the other hooks that say so."""

    def end_request(self, rid: str | list[str]) -> None:
        """Never called."""

    def begin_program(self, s: Any) -> None:
        """Never called."""

    def end_program(self, s: Any) -> None:
        """Called when a run is over, for each stream that made a request."""

    def commit_lazy_operations(self, s: Any) -> None:
        """Called before a fork into several streams."""

    def fork_program(
        self, src: Any, dst: list[Any], position_ids_offset: list[int] | None = None
    ) -> None:
        """Never called."""

    def fill_image(self, s: Any) -> None:
        """Never called."""

    def generate(self, s: Any, sampling_params: SglSamplingParams) -> Any:
        """Returns a text and its meta info; with n above 1, a list of texts."""
        raise NotImplementedError

    def generate_stream(self, s: Any, sampling_params: SglSamplingParams) -> Any:
        """Yields pieces of text, each with the meta info so far."""
        raise NotImplementedError

    def select(
        self, s: Any, choices: list[str], temperature: float, choices_method: Any = None
    ) -> ChoicesDecision:
        raise NotImplementedError

    def concatenate_and_append(self, src_rids: list[str], dst_rid: str) -> None:
        """Never called: joins append texts."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Does nothing unless it is overridden."""

    def flush_cache(self) -> Any:
        """Does nothing unless it is overridden."""

    def get_server_info(self) -> Any:
        """Returns None unless it is overridden."""
