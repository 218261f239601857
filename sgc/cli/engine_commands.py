"""The commands that serve models and look at engines, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.common import common_options
from sgc.cli.help import Choice, Group, GroupedCommand, command, option
from sgc.cli.numbers import FiniteRange
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
    """The bytes of a size such as 8GiB or 500MB."""
    try:
        return size_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _tls_options(command: Any) -> Any:
    """Adds the TLS options, for every command that listens."""
    cert = option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE",
                  aliases=("--ssl-certfile",), help="PEM certificate chain.")  # fmt: skip
    key = option("--tls-key", type=click.Path(path_type=Path), metavar="FILE",
                 aliases=("--ssl-keyfile",), help="PEM private key.")  # fmt: skip
    return cert(key(command))


# fmt: off
_SERVE_GROUPS = (
    Group.of("Model", "model adapter weights kv device max_context",
             "dtype served_model_name pooling attention tensor_parallel memory_fraction threads "
             "deterministic lookup jumps"),
    Group.of("Clients", "http host port listen token_file program",
             "tools max_programs tls_cert tls_key tool_format reasoning_format drain_s "
             "max_request_s"),
    Group.of("Memory and batches", "pool_tokens max_running kv_dir",
             "kv_dir_bytes chunk_tokens max_waiting policy shares_in_batch check"),
    Group.of("Look", "metrics log_format", "access_log log_prompts otlp"),
    Group.of("Many engines", "ray", "ray_address ray_cpus ray_gpus"),
)


@command("serve", groups=_SERVE_GROUPS)
@click.argument("named_model", metavar="[MODEL]", required=False)
@option("-m", "--model", metavar="ID_OR_PATH", aliases=("--model-path",), help="A folder, a "
        "Hugging Face id, or `fake`. Also the argument MODEL. Without it the demo model.")
@option("--served-model-name", metavar="NAME", help="What clients call the model; by default its "
        "own name.")
@option("--listen", metavar="ADDR", default="127.0.0.1:30100", show_default=True, help="Where it "
        "listens for gRPC. HOST:PORT or unix:PATH. Not loopback: a token is required.")
@option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Tokens, of which "
        "clients must send one. One a line; also SGC_TOKEN, one token.")
@_tls_options
@option("--pool-tokens", type=click.IntRange(min=1), metavar="N", aliases=("--max-total-tokens",),
        help="Tokens whose K and V fit in memory.")
@option("--max-context", type=click.IntRange(min=1), metavar="N",
        aliases=("--max-model-len", "--context-length"), help="Longest prompt and generation.")
@option("--chunk-tokens", type=click.IntRange(min=1), metavar="N", default=512, show_default=True,
        aliases=("--max-num-batched-tokens", "--chunked-prefill-size"),
        help="Most token positions in one step, prompts and generations.")
@option("--max-running", type=click.IntRange(min=1), metavar="N", default=256, show_default=True,
        aliases=("--max-num-seqs", "--max-running-requests"),
        help="Most requests that run at once.")
@option("--max-waiting", type=click.IntRange(min=1), metavar="N", default=8192, show_default=True,
        aliases=("--max-queued-requests",), help="Most that wait; more are told to retry later.")
@option("--policy", type=Choice(POLICIES), default=DEFAULT_POLICY, show_default=True,
        aliases=("--schedule-policy",), help="Which request runs next: by longest cached prefix, "
        "depth first, first come first served, at random, or of the program with the least left.")
@option("--batch-sharing/--no-batch-sharing", "shares_in_batch", default=True, help="Compute a "
        "prefix that running requests share once.")
@option("--lookup/--no-lookup", default=None, help="Guess next tokens: copy those that followed "
        "the last tokens earlier, and verify them in the next step. Without either: on CPUs.")
@option("--jump-forward/--no-jump-forward", "jumps", default=True, help="Append text that a "
        "constraint forces without asking the model.")
@option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the model's "
        "computation.")
@option("--dtype", type=Choice(DTYPES), default="auto", show_default=True, help="Type of numbers.")
@option("--device", metavar="auto|cpu|cuda[:N]", default="auto", show_default=True, help="Where "
        "the model is computed. auto: on a GPU, if there is one.")
@option("--attention", type=Choice(ATTENTION), default="auto", show_default=True,
        aliases=("--attention-backend",), help="The kernels for attention on a GPU; auto: the "
        "fastest that are installed.")
@option("--memory-fraction", type=FiniteRange(0.05, 1.0), metavar="X",
        default=MEMORY_FRACTION, show_default=True,
        aliases=("--gpu-memory-utilization", "--mem-fraction-static"),
        help="How much of a GPU's memory to take.")
@option("--tensor-parallel", type=click.IntRange(min=1), metavar="N", default=1, show_default=True,
        aliases=("--tensor-parallel-size", "--tp-size", "--tp"),
        help="GPUs that compute the model together.")
@option("--weights", type=Choice(HELD_AS), default="auto", show_default=True, help="int8: weights "
        "in eight bits. Half of what a step reads. Needs our own kernels.")
@option("--kv", type=Choice(HELD_AS), default="auto", show_default=True, help="int8: K and V in "
        "eight bits. Twice as many tokens fit. Needs our own kernels.")
@option("--kv-dir", metavar="DIR", type=click.Path(path_type=Path), help="Keeps prefixes on disk, "
        "and starts with them. A folder for K and V that no longer fit in memory, and for those in "
        "memory when the engine ends: the next engine starts warm.")
@option("--kv-dir-size", "kv_dir_bytes", metavar="SIZE", default="8GiB", callback=_size,
        show_default=True, help="How much that folder may hold.")
@option("--deterministic", is_flag=True, aliases=("--enable-deterministic-inference",), help="A "
        "request's reply does not depend on what runs beside it, on chunks or on cache hits. Needs "
        "our own kernels.")
@option("--pooling", type=Choice(["auto", "last", "mean"]), default="auto", show_default=True,
        help="What embeddings are made of: the last token, or the mean of all; auto: as the folder "
        "says, else the last.")
@option("--adapter", metavar="NAME=FOLDER", multiple=True, aliases=("--lora-modules",
        "--lora-paths"), help="A LoRA adapter, by the name that requests use. Repeatable.")
@option("--metrics", metavar="[HOST:]PORT|off", default="off", show_default=True, help="Prometheus "
        "metrics over HTTP. Not loopback: a token is required.")
@option("--http", metavar="[HOST:]PORT|off", default="off", show_default=True, help="OpenAI's and "
        "SGLang's HTTP APIs. They are beside gRPC. Not loopback: a token is required.")
@option("--host", metavar="HOST", help="Of --http. Without --port: on 30000.")
@option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="The same as --http PORT.")
@option("--tool-format", type=Choice(TOOL_FORMAT_NAMES), default=AUTO, show_default=True,
        aliases=("--tool-call-parser",), help="How the model writes tool calls; auto: as its chat "
        "template does.")
@option("--reasoning-format", type=Choice(REASONING_NAMES), default=AUTO, show_default=True,
        aliases=("--reasoning-parser",), help="The tag around the model's reasoning; auto: the one "
        "that its chat template names; off: none is split off.")
@option("--drain-seconds", "drain_s", type=FiniteRange(0, 86_400), metavar="SECONDS",
        default=20.0, show_default=True, help="How long requests that are under way may go on "
        "after SIGTERM.")
@option("--log-format", type=Choice(FORMATS), default=PLAIN, show_default=True, help="What lines "
        "on stderr are. json: every line is an object.")
@option("--access-log/--no-access-log", default=None, help="Write a line for each request. Without "
        "either: if lines are JSON.")
@option("--log-prompts", is_flag=True, help="Write prompts to the access log; without it, none of "
        "their text.")
@option("--otlp", metavar="URL|env", help="Send spans of requests there, over OTLP; env: as "
        "OTEL_EXPORTER_OTLP_ENDPOINT says. Needs sgc[otel].")
@option("--max-request-seconds", "max_request_s", metavar="SECONDS",
        type=FiniteRange(0, 86_400, min_open=True), help="How long a request may take, its "
        "wait included; it is ended then. Without it, as long as it needs.")
@option("--program", metavar="[NAME=]FILE.sgir", multiple=True, help="A program to run for "
        "clients. POST /v1/programs/NAME, and the model program/NAME. Repeatable; needs --http.")
@option("--tools", metavar="FILE|MODULE", multiple=True, help="Whose @sgc.tool functions these "
        "programs may call; repeatable.")
@option("--max-programs", type=click.IntRange(min=1), metavar="N", default=256, show_default=True,
        help="Most programs that run at once; more are told to retry later.")
@option("--check", is_flag=True, help="Check the engine's invariants after every step.")
@option("--ray", metavar="N|FILE", help="Start so many engines, on actors of Ray. They are behind "
        "the address of --http; FILE has the number, and is read again when it changes. Needs "
        "sgc[ray].")
@option("--ray-address", metavar="ADDR", help="Of a Ray cluster; auto: of one that runs here. "
        "Without it RAY_ADDRESS, else one is started here.")
@option("--ray-cpus", type=FiniteRange(0), metavar="X", help="CPUs that Ray sets aside for "
        "each engine; without it, 1.")
@option("--ray-gpus", type=FiniteRange(0), metavar="X", help="GPUs, likewise; without it, "
        "none.")
@common_options
def serve_command(**options: Any) -> None:
    """Serves a model over gRPC, and HTTP, until it is stopped."""
    from sgc.cli.running.serve import serve

    serve(**options)
# fmt: on


@command("route")
@option("--engine", "engines", metavar="ADDRESS", multiple=True, help="Of an engine: "
        "http://HOST:PORT of `sgc serve --http`, SGLang or vLLM, grpc://HOST:PORT of `sgc serve "
        "--listen`, or both with a comma between. Repeatable.")  # fmt: skip
@option("--engines", "file", type=click.Path(path_type=Path), help="A file of more of them, "
        "one a line; read again when it changes.")  # fmt: skip
@option("--listen", metavar="HOST:PORT", default="127.0.0.1:30000", show_default=True,
        help="Where it listens for HTTP. Not loopback: a token is required.")  # fmt: skip
@option("--grpc", "over_grpc", metavar="ADDR", default="off", show_default=True, help="Where it "
        "listens for gRPC, as an engine does: [HOST:]PORT or unix:PATH. Programs use it as "
        "--engine.")  # fmt: skip
@option("--token-file", type=click.Path(path_type=Path), help="As for `sgc serve`; a "
        "client's token is passed on to the engine.")  # fmt: skip
@_tls_options
@common_options
def route_command(**options: Any) -> None:
    """Serves several engines of one model at one address."""
    from sgc.cli.serving.route import route

    route(**options)


@command("doctor")
@option("--measure/--no-measure", "measures", default=True,
        help="Measure the most that arithmetic and memory do; takes a second.")  # fmt: skip
@option("--prepare", "prepares", is_flag=True, help="Compile FlashInfer's usual kernels "
        "now, where there is a GPU; takes minutes.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="JSON, for other programs.")
@common_options
def doctor_command(**options: Any) -> None:
    """Tells what this machine has for an engine.

    Also which parts are used, and what would help.
    """
    from sgc.cli.running.doctor import doctor

    doctor(**options)


@command("top")
@option("--engine", metavar="URI", default="grpc://127.0.0.1:30100", show_default=True,
        help="grpc://HOST:PORT, grpcs:// (TLS) or unix:PATH; token: SGC_TOKEN.")  # fmt: skip
@option("--interval", metavar="SECONDS", type=FiniteRange(min=0.05), default=1.0,
        show_default=True)  # fmt: skip
@option("--once", is_flag=True, help="One line, over one interval.")
@option("--programs", "with_programs", is_flag=True,
        help="Also a line for each run of a program, the least left first.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@common_options
def top_command(**options: Any) -> None:
    """Shows what a running engine is doing, until interrupted."""
    from sgc.cli.running.top import top

    top(**options)


@click.group("kv")
def kv_command() -> None:
    """The folders in which `sgc serve --kv-dir` keeps K and V."""


@kv_command.command("info", cls=GroupedCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@option("--json", "as_json", is_flag=True, help="JSON, for other programs.")
@common_options
def kv_info_command(**options: Any) -> None:
    """Tells how much a folder holds, and when it was last used."""
    from sgc.cli.running.kv import info

    info(**options)


@kv_command.command("clear", cls=GroupedCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@common_options
def kv_clear_command(**options: Any) -> None:
    """Removes what a folder keeps. Other files in it stay; engines may go on using it."""
    from sgc.cli.running.kv import clear

    clear(**options)
