"""`sgc serve --ray`: engines on actors of Ray, and a router before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sgc.errors import UsageError

if TYPE_CHECKING:
    from sgc.ray.fleet import Fleet, Served

_TLS = ("tls_cert", "tls_key")
DEFAULT_HTTP = "127.0.0.1:30000"  # as for `sgc route`
# Options that are the router's, or this command's.
_OWN = ("ray", "ray_address", "ray_cpus", "ray_gpus", "http", "host", "port", "token_file",
        "model", "named_model", "listen", "tls_cert", "tls_key")  # fmt: skip
# Options of one engine or one process, or for what goes through no router.
_NOT_HERE = ("metrics", "program", "tools", "max_programs", "log_format", "access_log",
             "log_prompts")  # fmt: skip


@dataclass(frozen=True, slots=True)
class RayAsked:
    """n: how many engines, or the file that has the number; cpus, gpus: of each."""

    n: str
    address: str | None
    cpus: float
    gpus: float


class _Source:
    """The addresses of a fleet as they are now, for a router."""

    def __init__(self, fleet: Fleet, n: str) -> None:
        self._fleet, self._n = fleet, n
        self._told: list[Served] = []

    def look(self) -> list[str]:
        self._fleet.scale(count_of(self._n))
        found = self._fleet.look()
        if found != self._told and found:
            self._told = found
            _tell(f"programs: --engine {','.join(each.uri for each in found)}")
        return [f"{each.url},{each.uri}" for each in found]


def serve_on_ray(asked: RayAsked, model: str | None, http: str, token_file: Path | None) -> None:
    """Starts the engines and routes to them until a signal."""
    from sgc.ray import Fleet
    from sgc.route.serving import RouteConfig, route

    context = click.get_current_context()
    arguments = dict(_arguments(context))
    cert, key = (None if p is None else str(p) for p in map(context.params.get, _TLS))
    n = count_of(asked.n)
    tokens = None if token_file is None else str(token_file.expanduser())
    listen = DEFAULT_HTTP if http == "off" else http
    if listen.isdigit():
        listen = f"127.0.0.1:{listen}"
    with Fleet(
        n, model, address=asked.address, num_cpus=asked.cpus, num_gpus=asked.gpus,
        token_file=tokens, tell=_tell, **arguments,
    ) as fleet:  # fmt: skip
        fleet.wait()
        route(
            RouteConfig(
                _Source(fleet, asked.n), listen, tokens, fleet.token, _grpc(context), cert, key
            ),
            _tell,
        )  # fmt: skip


def _grpc(context: click.Context) -> str:
    """Where the router listens for gRPC: where `--listen` says, if it is given."""
    is_given = context.get_parameter_source("listen") is not ParameterSource.DEFAULT
    return str(context.params["listen"]) if is_given else ""


def count_of(n: str) -> int:
    """The number of engines that `--ray N|FILE` asks for. Raises UsageError."""
    text = n
    if not n.isdecimal():
        try:
            text = Path(n).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--ray {n}: no number, and no file that has one: {error}") from error
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--ray {n}: expected a number from 1, found {text[:40]!r}")
    return int(text)


def _arguments(context: click.Context) -> Iterator[tuple[str, Any]]:
    """The engines' options: those that were given, as `sgc serve` calls them."""
    for param in context.command.params:
        name = param.name or ""
        if name in _OWN or context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        if name in _NOT_HERE:
            raise UsageError(
                f"{param.opts[0]} is not for engines on Ray",
                hint="start engines with `sgc serve`, and `sgc route` before them",
            )
        value = context.params.get(name)
        option = next(each for each in param.opts if each.startswith("--"))
        if isinstance(value, bool):
            if value == param.default:
                continue
            option = option if value else param.secondary_opts[0]
            value = True
        elif isinstance(value, tuple):
            value = dict(each.partition("=")[::2] for each in value)
        yield option.removeprefix("--").replace("-", "_"), value


def _tell(line: str) -> None:
    click.echo(f"sgc: {line}", err=True)
