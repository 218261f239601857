"""The keywords of a call beside the program's arguments: a run's options, and how to run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sgc.errors import RunLogError, UsageError
from sgc.lang.tools import resolve_tools
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.context import OnText
from sgc.runtime.executor.run.options import RunOptions

OPTION_NAMES = (
    frozenset(field.name for field in fields(RunOptions)) | {"max_new_tokens"}
) - {"is_seed_drawn"}  # fmt: skip

# The other keywords of a run, with their defaults.
HOW_DEFAULTS: dict[str, Any] = {
    "backend": None, "on_text": None, "stream": False, "use_thread": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """The keywords of a call: arguments, options, and how and where to run."""

    arguments: dict[str, Any]
    options: RunOptions
    backend: Any = None
    on_text: OnText | None = None
    stream: bool = False


def known_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a batch; raises UsageError for others."""
    unknown = [name for name in given if name not in OPTION_NAMES]
    if unknown:
        raise UsageError(
            f"unknown option {unknown[0]!r} of a batch",
            hint=f"options: {', '.join(sorted(OPTION_NAMES))}; arguments go into the rows",
        )
    return dict(given)


def make_options(given: Mapping[str, Any]) -> RunOptions:
    """Run options from keywords; SGLang's `max_new_tokens` is our `max_tokens`.

    allow_tools: a list of tools, functions and `module:name`. log: a log that is continued
    supplies the options it was written with. Without a seed, one is drawn and stored in the
    result. Raises UsageError for values that an option cannot have.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if "max_new_tokens" in chosen:
        chosen["max_tokens"] = chosen.pop("max_new_tokens")
    if "row" in chosen and not isinstance(chosen["row"], str):
        raise UsageError(f"row must be a text, the key of a row, found {chosen['row']!r}")
    if "log" in chosen:
        chosen = {**_logged(chosen["log"]), **chosen}
    if "allow_tools" in chosen:
        chosen["allow_tools"] = resolve_tools(chosen["allow_tools"])
    if "seed" not in chosen:
        chosen |= {"seed": random.SystemRandom().getrandbits(32), "is_seed_drawn": True}
    return RunOptions(**chosen)


def _logged(log: Any) -> dict[str, Any]:
    if not isinstance(log, RunLog):
        raise UsageError(f"log takes a sgc.RunLog, found {log!r}", hint="sgc.RunLog.open(path)")
    header = log.header
    if header is None:
        return {}
    unknown = header.options.keys() - OPTION_NAMES
    if unknown:
        raise RunLogError(f"{log.path} was written with options that are none: {sorted(unknown)}")
    return {**header.options, "seed": header.seed}
