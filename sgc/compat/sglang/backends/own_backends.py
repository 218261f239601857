"""Adapts backends that users wrote for SGLang to backends of sgc.

Such an object has `generate(s, sampling_params)` and any of SGLang's other hooks. They are called
as SGLang's interpreter calls them, each call on a thread of its own. Because a hook may do
anything, programs are interpreted on such a backend, never compiled, and no two requests share a
reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sgc.compat.sglang.backends.base_backend import BaseBackend
from sgc.compat.sglang.backends.streams import AskedStream, params_of
from sgc.compat.sglang.settings.config import global_config
from sgc.core.threads import in_thread
from sgc.errors import BackendError, SgcWarning, TraceError
from sgc.ir.graph import Node
from sgc.lang import choices as choice_methods
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.interface.backend import (
    Backend,
    Delta,
    FinishReason,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat

T = TypeVar("T")

MAX_IN_FLIGHT = 256
UNKNOWN_CONTEXT = 2**31 - 1
# Parameters that SGLang does not have.
_REFUSES = frozenset({"seed", "heal", "ebnf", "logit_bias", "repetition_penalty"})
PREFIX_CHARS = 64  # SGLang caches only common prefixes that are longer


class OwnEndpoint(Endpoint):
    """An endpoint around a user's backend, `own`."""

    is_own = True  # it has no connections that a fork would break
    compiles = False

    def __init__(self, own: Any) -> None:
        self.own = own
        super().__init__(OwnBackend(own))

    @property
    def model_info(self) -> dict[str, Any]:
        told = getattr(self.own, "model_info", None)
        return {"model_path": _model_name(self.own), **(told or {})}

    @property
    def chat_template(self) -> Any:
        return self.own.get_chat_template()

    @chat_template.setter
    def chat_template(self, template: Any) -> None:
        self.own.chat_template = template

    def cache_prefix(self, prefix_str: str) -> None:
        self.own.cache_prefix(prefix_str)

    def begin_batch(self, function: Any, n_rows: int) -> None:
        """Caches the rows' common prefix, if tracing finds one."""
        is_wanted = n_rows > 1 and global_config.enable_precache_with_tracing
        if is_wanted and _has_own(self.own, "cache_prefix"):
            with contextlib.suppress(TraceError):  # then the common prefix is unknown
                function.cache(self)

    def get_server_info(self) -> Any:
        return self.own.get_server_info()

    def flush_cache(self) -> Any:
        return self.own.flush_cache()

    def shutdown(self) -> None:
        self.own.shutdown()


class OwnBackend(Backend):
    """A `Backend` that calls a user's backend. Each node of a run has its own (`in_run`)."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._runs: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()

    def in_run(self, run: Any, node: Node, path: str, ordinal: int) -> Backend:
        """The backend for one node's request; run: the `Instance`."""
        known = self._runs.get(run)
        if known is None:
            known = self._runs[run] = _Run()
            run.finished.add_done_callback(lambda done: self._ended(known))
        return _InRun(self, known, run, node, path)

    async def capabilities(self) -> Capabilities:
        template = self.own.get_chat_template()
        chat = getattr(template, "chat_format", template)
        if not isinstance(chat, ChatFormat):
            raise BackendError(
                f"{_name(self.own)}.get_chat_template() gave {template!r}, which is no template",
                hint="give one of sglang.lang.chat_template, such as get_chat_template('default')",
            )
        return Capabilities(
            model=_model_name(self.own),
            chat=chat,
            max_context=UNKNOWN_CONTEXT,
            max_in_flight=MAX_IN_FLIGHT,
            refuses=_REFUSES,
            unconditional=True,
            images=True,
            tells_stop=False,
            speculates=getattr(self.own, "is_chat_model", None) is False,
        )

    async def call(self, call: Callable[[], T]) -> T:
        """Makes a call on a thread of its own; an abandoned call counts until it ends."""
        await self._in_flight.acquire()
        loop, work = asyncio.get_running_loop(), in_thread(call, f"sgc-{_name(self.own)}")
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._in_flight.release))
        return await asyncio.wrap_future(work)

    def _ended(self, run: _Run) -> None:
        if not _has_own(self.own, "end_program"):
            return

        def work() -> None:
            for stream in list(run.streams.values()):
                stream.is_finished = True
                try:
                    self.own.end_program(stream)
                except Exception as error:
                    what = f"{_name(self.own)}.end_program failed: {type(error).__name__}: {error}"
                    warnings.warn(what, SgcWarning, stacklevel=1)

        in_thread(work, "sgc-end-program")

    # Outside a run.

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Caches the constant beginning of a program or of a batch."""
        text = "".join(run.text for run in prompt)
        if len(text) > PREFIX_CHARS and _has_own(self.own, "cache_prefix"):
            await self.call(lambda: self.own.cache_prefix(text))
        return Usage()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        raise self._outside()

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        raise self._outside()

    def _outside(self) -> BackendError:
        return BackendError(f"{_name(self.own)} can be asked by programs only")


@dataclass(eq=False)
class _Run:
    """A run's streams at their last request, by path."""

    streams: dict[str, AskedStream] = field(default_factory=dict)
    sids: dict[str, str] = field(default_factory=dict)


class _InRun(Backend):
    """The backend for one node of a run."""

    def __init__(self, backend: OwnBackend, known: _Run, run: Any, node: Node, path: str) -> None:
        self._backend, self._own = backend, backend.own
        self._known, self._run, self._node, self._path = known, run, node, path

    async def capabilities(self) -> Capabilities:
        found: Capabilities = self._run.context.capabilities
        return found

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        s, params = self._asked(prompt), params_of(self._run, self._node, sampling, 1)
        if on_delta is not None and _has_own(self._own, "generate_stream"):
            s.stream = True
            return await self._streamed(s, params, on_delta)
        found = await self._backend.call(lambda: self._own.generate(s, params))
        (reply,) = self._replies(found, 1)
        return reply

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        n, s = len(samplings), self._asked(prompt)
        params = params_of(self._run, self._node, samplings[0], n)
        found = await self._backend.call(lambda: self._own.generate(s, params))
        return self._replies(found, n)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        s, run, node = self._asked(prompt), self._run, self._node
        method = run.field(node, "method")
        if isinstance(method, str):
            method = getattr(choice_methods, method)
        temperature = run.field(node, "temperature") or 0.0
        found = await self._backend.call(
            lambda: self._own.select(s, list(choices), temperature, method)
        )
        decision = getattr(found, "decision", None)
        if decision not in choices:
            raise self._wrong("select", found, "a ChoicesDecision of one of the choices")
        meta = found.meta_info if isinstance(found.meta_info, Mapping) else {}
        return Scored((), Usage(), choices.index(decision), "own", dict(meta))

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Called before a fork into several streams."""
        if _has_own(self._own, "commit_lazy_operations"):
            s = self._asked(prompt)
            await self._backend.call(lambda: self._own.commit_lazy_operations(s))
        return Usage()

    async def _streamed(self, s: AskedStream, params: Any, on_delta: OnDelta) -> Generated:
        loop = asyncio.get_running_loop()

        def follow() -> tuple[str, Any]:
            text, last = "", None
            for found in self._own.generate_stream(s, params):
                piece, last = self._text_and_meta("generate_stream", found)
                if not isinstance(piece, str):
                    raise self._wrong("generate_stream", found, "pairs of a text and its meta info")
                text += piece
                if piece:
                    loop.call_soon_threadsafe(on_delta, Delta(piece, last or {}))
            return text, last

        (reply,) = self._replies(await self._backend.call(follow), 1)
        return reply

    def _asked(self, prompt: Prompt) -> AskedStream:
        run, path, ahead = self._run, self._path, dict(self._node.fields).get("ahead")
        mine = [r for r in run.requests.made if r.is_used and r.name and _is_of(path, r.path)]
        sid = self._known.sids.setdefault(path, uuid.uuid4().hex)
        s = self._known.streams[path] = AskedStream(
            self._own,
            prompt,
            sid,
            chat_template=self._own.get_chat_template(),
            num_api_spec_tokens=run.values.operand(ahead) if ahead is not None else None,
            variables={r.name: r.value for r in mine},
            meta_info={r.name: r.meta_info() for r in mine},
        )
        return s

    def _replies(self, found: Any, n: int) -> tuple[Generated, ...]:
        texts, meta = self._text_and_meta("generate", found)
        texts = texts if isinstance(texts, (list, tuple)) else [texts]
        if len(texts) != n or not all(isinstance(text, str) for text in texts):
            raise self._wrong("generate", found, f"{n} texts" if n > 1 else "a text, and meta info")
        metas = list(meta) if isinstance(meta, (list, tuple)) else [meta] * n
        return tuple(_generated(*each) for each in zip(texts, metas, strict=True))

    def _text_and_meta(self, hook: str, found: Any) -> tuple[Any, Any]:
        if not isinstance(found, tuple) or len(found) != 2:
            raise self._wrong(hook, found, "a pair of a text and its meta info")
        return found

    def _wrong(self, hook: str, found: Any, expected: str) -> BackendError:
        shown = repr(found)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return BackendError(
            f"{_name(self._own)}.{hook} gave {shown}", hint=f"it must give {expected}"
        )


def adapted(own: Any) -> OwnEndpoint:
    """An endpoint around an object that has SGLang's hooks."""
    return OwnEndpoint(own)


def _is_of(path: str, other: str) -> bool:
    """Whether a stream is the other one or is forked from it."""
    return path == other or path.startswith(other + "/:")


def _generated(text: str, meta: Any) -> Generated:
    told: dict[str, Any] = dict(meta) if isinstance(meta, Mapping) else {}
    finish = told.get("finish_reason")
    finish = finish.get("type") if isinstance(finish, Mapping) else finish
    reason = FinishReason.LENGTH if finish == "length" else FinishReason.STOP
    counts = [told.get(name) for name in ("prompt_tokens", "completion_tokens")]
    n_prompt, n_said = (n if type(n) is int else 0 for n in counts)
    usage = Usage(prompt_tokens=n_prompt, completion_tokens=n_said)
    return Generated(text, (), (), text, reason, None, usage, extra=told, tells_all=True)


def _has_own(own: Any, hook: str) -> bool:
    """Whether an object has a hook beyond those of SGLang's base class."""
    found = getattr(type(own), hook, None) or getattr(own, hook, None)
    return callable(found) and found is not getattr(BaseBackend, hook)


def _model_name(own: Any) -> str:
    try:
        return str(own.get_model_name())
    except (AttributeError, NotImplementedError):
        return _name(own)


def _name(own: Any) -> str:
    return type(own).__name__
