"""Runs a server once its step process has started: loads the tokenizer while the model loads,
listens, and stops both. Clients can connect only once the model is loaded. `serve.py` calls it; it
imports no torch.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import math
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sgc.errors import LoadError, SgcError
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.config import Checked, ServerConfig
from sgc.runtime.engine.images.families import why_none
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.logs.observing import Observing, observing
from sgc.runtime.engine.names import IN_EIGHT_BITS, KV_CLOSING_S, ServedAdapter
from sgc.runtime.engine.notify import READY, STOPPING, notify
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES, ServerLimits, most_frame_bytes
from sgc.runtime.engine.process import garbage, tuning
from sgc.runtime.engine.reloading import reload_on_hangup
from sgc.runtime.engine.server.listen import Address, Security, bind, tls_context
from sgc.runtime.engine.server.server import EngineFacts, EngineServer, info_of
from sgc.runtime.engine.server.shared import Shared
from sgc.runtime.engine.stopping import Stop, drain
from sgc.runtime.engine.text.json_files import read_json
from sgc.runtime.engine.text.template import PLAIN
from sgc.runtime.engine.text.template_child import start_probe
from sgc.runtime.engine.text.template_worker import Renderer
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer
from sgc.runtime.engine.worker.link import WorkerDied, WorkerLink
from sgc.runtime.engine.worker.process import WorkerProcess

if TYPE_CHECKING:
    import ssl

    from sgc.runtime.engine.http.beside import Beside
    from sgc.runtime.engine.images.reader import ImageReader
    from sgc.runtime.engine.metrics.scraping import Scraping

T = TypeVar("T")
_Site = contextlib.AbstractAsyncContextManager[str]


async def serve(checked: Checked, worker: WorkerProcess, beside: Beside | None = None) -> int:
    """Serves until a signal or the step process's end; returns the exit status. beside: what else
    is on the HTTP site."""
    config, source, security = checked.config, checked.source, checked.security
    link = WorkerLink(worker, 0.0 if config.kv_dir is None else KV_CLOSING_S)
    tuning.keep_freed_memory(256 << 20)  # large frames are copied a few times, in the event loop
    stop = Stop(config.exit_with_parent)
    log = Log(config.log_format)
    log.take_over()
    log.start()
    if worker.process.stderr is not None:
        log.follow(worker.process.stderr)
    target, probe, renderer = "", None, None
    private = contextlib.ExitStack()
    try:
        probe = start_probe(source.tokenizer_folder)
        tokenizer = load_tokenizer(source.tokenizer_folder)
        probing = _value(PLAIN) if probe is None else asyncio.to_thread(probe.result)
        chat = await _first(probing, stop.asked.wait())
        ready = chat and await _first(link.connect(), stop.asked.wait())
        if ready is None:
            return 0
        _warn(log, chat, tokenizer, ready.vocab_size, [checked.pooling.warning])
        if checked.adapters:
            log.tell("adapters", adapters_line(checked.adapters))
        if ready.HasField("accuracy"):
            log.tell("accuracy", accuracy_line(ready))
        renderer = None if probe is None or not chat.from_model else Renderer(probe.template)
        images = await asyncio.to_thread(_images, checked, ready, tokenizer)
        facts, shared = _assemble(checked, ready, chat, tokenizer, link, renderer, images)
        server = EngineServer(security, facts.limits)
        target = bind(server.grpc, checked.address, security)
        own = private.enter_context(_own_socket(server, security)) if beside else ""
        await server.start(facts, shared, beside.add_to if beside else None)
        async with (
            _opened(beside, own, bool(security.tokens), facts.limits.max_request_s),
            _scraping(checked, facts, shared) as scraping,
            observing(
                shared,
                log,
                facts.model,
                access_log=bool(config.access_log),
                prompts=config.log_prompts,
                otlp=config.otlp,
            ) as watching,
            _http(checked, facts, shared, scraping, beside, watching) as http_url,
            _metrics(checked, scraping) as metrics_url,
        ):
            if metrics_url:
                log.tell("metrics", f"metrics on {metrics_url}", url=metrics_url)
            if http_url:
                log.tell("embeddings", checked.pooling.line)
                log.tell("tools", _calls_line(facts))
                log.tell("http", f"HTTP on {http_url}", url=http_url)
            if config.tells:
                log.tell("start", _about(config, facts, beside), model=facts.model)
            log.tell("listening", f"listening on {target}", address=target)
            notify(READY)
            reload_on_hangup(config, security, beside, log)
            garbage.collect_seldom(has_connections=True)
            death = await _first(link.wait_dead(), stop.asked.wait())
            if death is None:
                notify(STOPPING)
                await server.leave()
                leaving = drain(shared, beside, config.drain_s, stop.now, log)
                death = await _first(link.wait_dead(), leaving)
            await server.stop(death or "the engine is stopping")
        shared.close()
        if death is None:
            return 0
        raise SgcError(death)
    except WorkerDied as error:
        raise SgcError(f"the model cannot be loaded: {error}") from error
    finally:
        private.close()
        if probe is not None:
            probe.close()
        if renderer is not None:
            renderer.close()
        await link.close()
        if target and checked.address.path is not None:
            checked.address.path.unlink(missing_ok=True)
        log.close()


def _assemble(
    checked: Checked,
    ready: Any,
    chat: Any,
    tokenizer: Tokenizer,
    link: WorkerLink,
    renderer: Renderer | None,
    images: ImageReader | str | None,
) -> tuple[EngineFacts, Shared]:
    limits = ServerLimits(ready.max_context, ready.pool_tokens, ready.vocab_size)
    most = most_frame_bytes(tokenizer, limits.max_positions)
    limits = replace(
        limits,
        max_frame_bytes=most,
        pooling=checked.pooling,
        adapters=checked.adapters,
        max_request_s=checked.config.max_request_s or math.inf,
    )
    if images is not None:
        limits = replace(limits, images=images)
        if not isinstance(images, str):
            limits = replace(limits, max_frame_bytes=MAX_MESSAGE_BYTES)
    facts = EngineFacts(
        checked.config.served_model_name or checked.source.name,
        ready,
        chat,
        tokenizer,
        limits,
        renderer,
        checked.config.tool_format,
        checked.config.reasoning_format,
    )
    return facts, Shared(tokenizer, link, limits)


def _about(config: ServerConfig, facts: EngineFacts, beside: Beside | None) -> str:
    """The line that says what is served, and within which limits."""
    ready = facts.ready
    programs = "" if beside is None else f"\nprograms: {', '.join(beside.models)}"
    longest = "" if ready.pool_tokens >= ready.max_context else ", the most of one request"
    return (
        f"{facts.model}: {ready.dtype} on {ready.device}, context {ready.max_context:,}, KV pool "
        f"{ready.pool_tokens:,} tokens{longest}; at most {config.max_running:,} requests run and "
        f"{config.max_waiting:,} wait{programs}"
    )


def _images(checked: Checked, ready: Any, tokenizer: Tokenizer) -> ImageReader | str | None:
    """The reader of images, or the reason why there is none."""
    folder = checked.source.folder
    if folder is None:
        return None
    config = read_json(folder / "config.json")
    if not ready.takes_images:
        return why_none(config)
    from sgc.runtime.engine.images.reader import image_token_id, load_reader

    token_id = image_token_id(folder, config)
    token = tokenizer.added_tokens.get(token_id)
    if token is None:
        raise LoadError(
            f"{folder / 'config.json'} says that the image token is {token_id}, which is none of "
            "the tokenizer's added tokens",
            hint="save the model's tokenizer there again",
        )
    return load_reader(folder, token)


def _warn(
    log: Log, chat: Any, tokenizer: Tokenizer, vocab_size: int, more: Sequence[str] = ()
) -> None:
    unknown = [str(i) for i in tokenizer.eos_ids if i >= vocab_size]
    notes = [*chat.notes, *filter(None, more)]
    if unknown:
        notes.append(
            f"end-of-sequence ids {', '.join(unknown)} are not in the vocabulary of {vocab_size} "
            "and are ignored"
        )
    for note in notes:
        log.tell("warning", f"warning: {note}", "warning")


def adapters_line(adapters: Sequence[ServedAdapter]) -> str:
    """The line on adapters that an engine logs at its start."""
    told = ", ".join(f"{adapter.name} (rank {adapter.rank})" for adapter in adapters)
    return f"adapters: {told}"


def accuracy_line(ready: wpb.Ready) -> str:
    """The line on the accuracy that eight bits cost, on the fixed text of `accuracy.py`."""
    found = ready.accuracy
    what = {"weights": ready.weights, "K and V": ready.kv}
    held = ", ".join(name for name, kind in what.items() if kind == "int8")
    return (
        f"{IN_EIGHT_BITS}: {held}; on {found.tokens} tokens of text a cross-entropy of "
        f"{found.cross_entropy:.4f} nats ({ready.dtype}: {found.own_cross_entropy:.4f}), a "
        f"divergence of {found.divergence:.2g}, and the same likeliest token after "
        f"{found.equal_share:.1%}"
    )


@contextlib.asynccontextmanager
async def _scraping(
    checked: Checked, facts: EngineFacts, shared: Shared
) -> AsyncIterator[Scraping | None]:
    """What answers scrapes within the block; None if there is no HTTP, or no package for it."""
    is_wanted = checked.scraped is not None or checked.http is not None
    if not is_wanted or importlib.util.find_spec("prometheus_client") is None:
        yield None
        return
    from sgc.runtime.engine.metrics.scraping import scraping

    tokens = checked.security.tokens
    accounts = lambda: tokens.accounts  # noqa: E731
    with scraping(shared.stats, info_of(facts), shared.tally, accounts) as found:
        yield found


def _metrics(checked: Checked, scraping: Scraping | None) -> _Site:
    """Serves the metrics within the block; yields their URL, or "" if they are off."""
    if checked.scraped is None or scraping is None:
        return contextlib.nullcontext("")
    from sgc.runtime.engine.metrics.http import serving_metrics

    return serving_metrics(checked.scraped, checked.security, _tls(checked), scraping)


@contextlib.contextmanager
def _own_socket(server: EngineServer, security: Security) -> Iterator[str]:
    """A socket for this process to reach its own engine, in a folder that others cannot open."""
    with tempfile.TemporaryDirectory(prefix="sgc-own-") as folder:
        yield bind(server.grpc, Address(path=Path(folder) / "engine"), Security(security.tokens))


@contextlib.asynccontextmanager
async def _opened(
    beside: Beside | None, uri: str, has_tokens: bool, max_run_s: float
) -> AsyncIterator[None]:
    if beside is None:
        yield
        return
    await beside.open(uri, has_tokens, max_run_s)
    try:
        yield
    finally:
        await beside.close()


def _http(
    checked: Checked,
    facts: EngineFacts,
    shared: Shared,
    scraping: Scraping | None,
    beside: Beside | None,
    watching: Observing,
) -> _Site:
    """Serves OpenAI's and SGLang's HTTP APIs within the block; yields the URL, or "" if off."""
    if checked.http is None:
        return contextlib.nullcontext("")
    from sgc.runtime.engine.http.app import serving_http

    security, tls = checked.security, _tls(checked)
    return serving_http(checked.http, security, tls, facts, shared, scraping, beside, watching)


def _calls_line(facts: EngineFacts) -> str:
    from sgc.runtime.engine.http.turns.formats import line_of

    return line_of(facts)


def _tls(checked: Checked) -> ssl.SSLContext | None:
    """The TLS context of the HTTP servers; None without a certificate."""
    return tls_context(checked.config.tls_cert, checked.config.tls_key)


async def _first(wanted: Any, stop: Any) -> Any:
    """The result of `wanted`, or None if `stop` comes first."""
    tasks = [asyncio.ensure_future(wanted), asyncio.ensure_future(stop)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _value(value: T) -> T:
    return value
