"""Permissions as IntEnum and StrEnum, look-ups by value, defaults by sentinel objects."""

from enum import Enum, IntEnum

import sgc

_MISSING = object()


class Level(IntEnum):
    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


class Area(str, Enum):
    FILES = "files"
    USERS = "users"
    BILLING = "billing"


def get(mapping, key, default=_MISSING):
    if key in mapping:
        return mapping[key]
    if default is _MISSING:
        raise KeyError(key)
    return default


@sgc.function
def program(s, request: str):
    s += f"Request: {request}\n"
    granted: dict[Area, Level] = {}
    for area in Area:
        s += f"{area.value}: " + sgc.select("level", choices=[m.name for m in Level]) + "\n"
        level = Level[s["level"]]
        if level > Level.NONE:
            granted[area] = level
    top = max(granted.values(), default=Level.NONE)
    if top >= Level.ADMIN:
        s += "Reason for admin:" + sgc.gen("reason", max_tokens=24, stop="\n")
        if len(s["reason"].strip()) < 5:
            top = Level.WRITE
    billing = get(granted, Area.BILLING, Level.NONE)
    try:
        users = get(granted, Area.USERS).name
    except KeyError:
        users = "no access"
    return {
        "top": top.name,
        "billing": int(billing),
        "users": users,
        "areas": [a.value for a in granted],
    }


ARGUMENTS = [{"request": "I keep the books"}]
REPLIES = [" Books.", " no", ""]
