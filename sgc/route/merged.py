"""Merges the descriptions and statistics of several engines into those of one."""

from __future__ import annotations

from collections.abc import Sequence

from sgc.proto import engine_pb2 as pb

_LARGEST = 2**32 - 1


def common_info(told: pb.Info, infos: Sequence[pb.Info], most: int) -> pb.Info:
    """The common description of all engines; pools and numbers of concurrent requests are added up.
    told: what one engine told a client, which may be allowed less. most: concurrent requests."""
    infos = infos or [told]
    found = pb.Info()
    found.CopyFrom(told)
    found.max_context = min(each.max_context for each in infos)
    found.max_message_bytes = min(each.max_message_bytes for each in infos)
    found.pool_tokens = min(_LARGEST, sum(each.pool_tokens for each in infos))
    found.max_in_flight = min(most, told.max_in_flight * len(infos))
    found.takes_joined = all(each.takes_joined for each in infos)
    if not all(each.HasField("images") for each in infos):
        found.ClearField("images")
    if any(each.pooling != told.pooling for each in infos):
        found.pooling = ""
    return found


def sum_of(stats: Sequence[pb.Stats]) -> pb.Stats:
    """The sums of all counts, and the program runs of all engines, engine by engine."""
    found = pb.Stats()
    for each in stats:
        for field, value in each.ListFields():
            if field.is_repeated:
                getattr(found, field.name).extend(value[: 16 - len(getattr(found, field.name))])
            elif field.message_type is None:
                added = getattr(found, field.name) + value
                is_32 = field.cpp_type == field.CPPTYPE_UINT32
                setattr(found, field.name, min(added, _LARGEST) if is_32 else added)
    return found
