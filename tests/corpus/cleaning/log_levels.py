"""Parses a log with a generator and a context manager that counts, bisect for percentiles."""

import bisect
import re
from contextlib import contextmanager

import sgc

LINE = re.compile(r"^(\d+)ms (INFO|WARN|ERROR) (.*)$", re.MULTILINE)


@contextmanager
def counted(stats, key):
    stats[key] = stats.get(key, 0) + 1
    try:
        yield
    except ValueError:
        stats["failed"] = stats.get("failed", 0) + 1


def entries(text):
    for m in LINE.finditer(text):
        ms, level, message = m.groups()
        yield int(ms), level, message


@sgc.function
def program(s, log: str, limit: int = 100):
    stats = {}
    times = []
    for ms, level, message in entries(log):
        bisect.insort(times, ms)
        if level == "INFO":
            continue
        with counted(stats, level):
            s += (
                f"{level}: {message}\nSeverity 1-5: "
                + sgc.gen("sev", max_tokens=2, stop="\n")
                + "\n"
            )
            if int(s["sev"]) > 3:
                s += "Action:" + sgc.gen("action", max_tokens=12, stop="\n") + "\n"
    slow = len(times) - bisect.bisect_right(times, limit)
    p50 = times[len(times) // 2] if times else None
    return stats, slow, p50


ARGUMENTS = [{"log": "12ms INFO start\n150ms WARN slow disk\n90ms ERROR no space\n"}, {"log": ""}]
REPLIES = ["2", "5", "high", " restart", ""]
