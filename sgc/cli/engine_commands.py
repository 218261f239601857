"""The commands that serve models and look at engines, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.main import debug_option
from sgc.runtime.engine.logs.log import FORMATS, PLAIN
from sgc.runtime.engine.names import (
    ATTENTION,
    AUTO,
    DEFAULT_POLICY,
    DTYPES,
    HELD_AS,
    MEMORY_FRACTION,
    POLICIES,
    REASONING_NAMES,
    TOOL_FORMAT_NAMES,
    size_of,
)  # fmt: skip


def _size(_: click.Context, __: click.Parameter, value: str) -> int:
    """Bytes, of such as 8GiB or 500MB."""
    try:
        return size_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("serve")
@click.option("--model", metavar="ID_OR_PATH", help="A Hugging Face folder or id, or `fake`. "
              "Without it the default model.")  # fmt: skip
@click.option("--served-model-name", metavar="NAME", help="What clients call the model; by default "
              "its own name.")  # fmt: skip
@click.option("--listen", metavar="ADDR", default="127.0.0.1:30100", show_default=True,
              help="HOST:PORT or unix:PATH. Not loopback: a token is required.")  # fmt: skip
@click.option("--token-file", type=click.Path(path_type=Path), help="File of tokens, one a "
              "line, of which clients must send one; also SGC_TOKEN, one token.")  # fmt: skip
@click.option("--tls-cert", type=click.Path(path_type=Path), help="PEM certificate chain.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM private key.")
@click.option("--pool-tokens", type=click.IntRange(min=1), help="Tokens whose KV fits in memory.")
@click.option("--max-context", type=click.IntRange(min=1), help="Longest prompt and generation.")
@click.option("--chunk-tokens", type=click.IntRange(min=1), default=512, show_default=True,
              help="Most token positions in one step, prompts and generations.")  # fmt: skip
@click.option("--max-running", type=click.IntRange(min=1), default=256, show_default=True,
              help="Most requests that run at once.")  # fmt: skip
@click.option("--max-waiting", type=click.IntRange(min=1), default=8192, show_default=True,
              help="Most that wait; more are told to retry later.")  # fmt: skip
@click.option("--policy", type=click.Choice(POLICIES), default=DEFAULT_POLICY, show_default=True,
              help="Which request runs next: the longest cached prefix, depth first, first come "
              "first served, random, or of the program with the least left.")  # fmt: skip
@click.option("--batch-sharing/--no-batch-sharing", "shares_in_batch", default=True,
              help="Compute a prefix that running requests share once.")  # fmt: skip
@click.option("--lookup/--no-lookup", default=None, help="Guess next tokens: copy what "
              "followed the last ones before, and let the next step verify it. Without either: on "
              "CPUs.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the model's computation.")
@click.option("--dtype", type=click.Choice(DTYPES), default="auto", show_default=True)
@click.option("--device", metavar="auto|cpu|cuda[:N]", default="auto", show_default=True,
              help="Where the model is computed; auto: on a GPU, if there is one.")  # fmt: skip
@click.option("--attention", type=click.Choice(ATTENTION), default="auto", show_default=True,
              help="What attends on a GPU; auto: the fastest that is installed.")  # fmt: skip
@click.option("--memory-fraction", type=click.FloatRange(0.05, 1.0), default=MEMORY_FRACTION,
              show_default=True, help="How much of a GPU's memory to take.")  # fmt: skip
@click.option("--tensor-parallel", type=click.IntRange(min=1), default=1, show_default=True,
              help="GPUs that compute the model together.")  # fmt: skip
@click.option("--weights", type=click.Choice(HELD_AS), default="auto", show_default=True,
              help="int8: in eight bits, half of what a step reads. Needs our own "
              "kernels.")  # fmt: skip
@click.option("--kv", type=click.Choice(HELD_AS), default="auto", show_default=True,
              help="int8: K and V in eight bits, so that twice as many tokens fit. Needs our own "
              "kernels.")  # fmt: skip
@click.option("--kv-dir", metavar="DIR", type=click.Path(path_type=Path),
              help="A folder for K and V that no longer fit in memory, and for what is there when "
              "the engine ends: engines on it start warm.")  # fmt: skip
@click.option("--kv-dir-size", "kv_dir_bytes", metavar="SIZE", default="8GiB", callback=_size,
              show_default=True, help="How much that folder may hold.")  # fmt: skip
@click.option("--deterministic", is_flag=True, help="A request's reply does not depend on what "
              "runs beside it, on chunks or on cache hits. Needs our own kernels.")  # fmt: skip
@click.option("--pooling", type=click.Choice(["auto", "last", "mean"]), default="auto",
              show_default=True, help="What embeddings are made of: the last token, or the mean of "
              "all; auto: as the folder says, else the last.")  # fmt: skip
@click.option("--adapter", metavar="NAME=FOLDER", multiple=True, help="A LoRA adapter that "
              "requests may ask for by its name; may be given several times.")  # fmt: skip
@click.option("--metrics", metavar="[HOST:]PORT|off", default="off", show_default=True,
              help="Prometheus metrics over HTTP. Not loopback: a token is required.")  # fmt: skip
@click.option("--http", metavar="[HOST:]PORT|off", default="off", show_default=True,
              help="OpenAI's and SGLang's HTTP APIs beside gRPC. Not loopback: a token is "
              "required.")  # fmt: skip
@click.option("--tool-format", type=click.Choice(TOOL_FORMAT_NAMES), default=AUTO,
              show_default=True, help="How the model writes tool calls; auto: as its chat template "
              "does.")  # fmt: skip
@click.option("--reasoning-format", type=click.Choice(REASONING_NAMES), default=AUTO,
              show_default=True, help="The tag around the model's reasoning; auto: the one that "
              "its chat template names; off: none is split off.")  # fmt: skip
@click.option("--drain-seconds", "drain_s", type=click.FloatRange(0, 86_400), default=20.0,
              show_default=True, help="How long requests that are under way may go on after "
              "SIGTERM.")  # fmt: skip
@click.option("--log-format", type=click.Choice(FORMATS), default=PLAIN, show_default=True,
              help="json: every line on standard error is an object.")  # fmt: skip
@click.option("--access-log/--no-access-log", default=None, help="A line for each request. Without "
              "either: if lines are JSON.")  # fmt: skip
@click.option("--log-prompts", is_flag=True, help="Prompts in the access log; without it, none of "
              "their text.")  # fmt: skip
@click.option("--otlp", metavar="URL|env", help="Send spans of requests there, over OTLP; env: as "
              "OTEL_EXPORTER_OTLP_ENDPOINT says. Needs sgc[otel].")  # fmt: skip
@click.option("--max-request-seconds", "max_request_s", metavar="SECONDS",
              type=click.FloatRange(0, 86_400, min_open=True), help="How long a request may take, "
              "its wait included; it is ended then. Without it, as long as it needs.")  # fmt: skip
@click.option("--program", metavar="[NAME=]FILE.sgir", multiple=True, help="A compiled program "
              "to run for clients: POST /v1/programs/NAME, and the model program/NAME. Repeatable; "
              "needs --http.")  # fmt: skip
@click.option("--tools", metavar="FILE|MODULE", multiple=True, help="Whose @sgc.tool functions "
              "these programs may call; repeatable.")  # fmt: skip
@click.option("--max-programs", type=click.IntRange(min=1), default=256, show_default=True,
              help="Most programs that run at once; more are told to retry later.")  # fmt: skip
@click.option("--check", is_flag=True, help="Check the engine's invariants after every step.")
@debug_option
def serve_command(**options: Any) -> None:
    """Serves a model over gRPC until it is stopped."""
    from sgc.cli.running.serve import serve

    serve(**options)


@click.command("route")
@click.option("--engine", "engines", metavar="URL", multiple=True, help="http://HOST:PORT of an "
              "engine: `sgc serve --http`, SGLang or vLLM. Repeatable.")  # fmt: skip
@click.option("--engines", "file", type=click.Path(path_type=Path), help="A file of more of them, "
              "one a line; read again when it changes.")  # fmt: skip
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:30000", show_default=True,
              help="Not loopback: a token is required.")  # fmt: skip
@click.option("--token-file", type=click.Path(path_type=Path), help="As for `sgc serve`; a "
              "client's token is passed on to the engine.")  # fmt: skip
@debug_option
def route_command(**options: Any) -> None:
    """Serves several engines of one model at one HTTP address."""
    from sgc.cli.running.route import route

    route(**options)


@click.command("doctor")
@click.option("--measure/--no-measure", "measures", default=True,
              help="Measure the most that arithmetic and memory do; takes a second.")  # fmt: skip
@click.option("--prepare", "prepares", is_flag=True, help="Compile FlashInfer's usual kernels "
              "now, where there is a GPU; takes minutes.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="JSON, for other programs.")
@debug_option
def doctor_command(**options: Any) -> None:
    """Tells what this machine has for an engine, what of it is used, and what would help."""
    from sgc.cli.running.doctor import doctor

    doctor(**options)


@click.command("top")
@click.option("--engine", metavar="URI", default="grpc://127.0.0.1:30100", show_default=True,
              help="grpc://HOST:PORT, grpcs:// (TLS) or unix:PATH; token: SGC_TOKEN.")  # fmt: skip
@click.option("--interval", metavar="SECONDS", type=click.FloatRange(min=0.05), default=1.0,
              show_default=True)  # fmt: skip
@click.option("--once", is_flag=True, help="One line, over one interval.")
@click.option("--programs", "with_programs", is_flag=True,
              help="Also a line for each run of a program, the least left first.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@debug_option
def top_command(**options: Any) -> None:
    """Shows what a running engine is doing, until interrupted."""
    from sgc.cli.running.top import top

    top(**options)


@click.group("kv")
def kv_command() -> None:
    """The folders in which `sgc serve --kv-dir` keeps K and V."""


@kv_command.command("info")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="JSON, for other programs.")
@debug_option
def kv_info_command(**options: Any) -> None:
    """Tells how much a folder holds, and when it was last used."""
    from sgc.cli.running.kv import info

    info(**options)


@kv_command.command("clear")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@debug_option
def kv_clear_command(**options: Any) -> None:
    """Removes what a folder keeps. Other files in it stay; engines may go on using it."""
    from sgc.cli.running.kv import clear

    clear(**options)
