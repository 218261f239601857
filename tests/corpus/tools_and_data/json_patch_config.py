"""Changes a nested configuration by what a user says: paths, types and ranges are checked."""

import json
from copy import deepcopy
from typing import Any

import sgc

LIMITS = {"server.port": (1024, 65535), "cache.size_mb": (0, 4096)}
EMPTY: dict[str, Any] = {}


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in config.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict):
            flat |= flatten(value, path)
        else:
            flat[path] = value
    return flat


def assign(config: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        config = config[name]
    config[last] = value


def coerce(text: str, like: Any) -> Any:
    text = text.strip().strip('"')
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    return type(like)(text)


@sgc.function
def program(s, config: dict[str, Any] = EMPTY, wishes: tuple[str, ...] = ()):
    new = deepcopy(config)
    notes = []
    for wish in wishes:
        flat = flatten(new)
        s += json.dumps(flat, indent=1) + f"\nThe user says: {wish}\nPath: "
        if not flat:
            return new, ["nothing to change"]
        s += sgc.select("path", choices=sorted(flat)) + "\nNew value: "
        s += sgc.gen("value", max_tokens=12, stop="\n") + "\n"
        path = s["path"]
        try:
            value = coerce(s["value"], flat[path])
            low, high = LIMITS.get(path, (None, None))
            if low is not None and not low <= value <= high:
                raise ValueError(f"{value} is not within {low} and {high}")
        except ValueError as e:
            s += f"Rejected: {e}\nExplain:" + sgc.gen("why", max_tokens=32, stop="\n") + "\n"
            notes.append(f"{path}: {e}")
        else:
            assign(new, path, value)
    return new, notes


ARGUMENTS = [
    {"config": {"server": {"port": 8080, "tls": False}, "name": "x"}, "wishes": ("tls", "port")},
    {"wishes": ("anything",)},
    {},
]
REPLIES = ["9443", "true", "TRUE", "a lot", '"8080"', "80"]
