"""Probes a model's chat template in a child process with time and memory limits.

The server calls `start_probe` early and `result` when it needs the answer. Run as a module, it is
the child: it reads a JSON request from stdin and writes a JSON answer to stdout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sgc.runtime.engine.process import child, garbage
from sgc.runtime.engine.text.json_files import content_of, read_bytes, read_json, refuse
from sgc.runtime.engine.text.template import PLAIN, Chat, ProbeError, Role, fingerprint, probe
from sgc.runtime.engine.text.template_tools import calls_of, reasoning_of

CPU_LIMIT_S = 5
WALL_LIMIT_S = 20.0
MEMORY_LIMIT_BYTES = 1024**3
MAX_TEMPLATE_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A template's text and the texts of the tokens it may use."""

    source: str
    bos: str
    eos: str

    @property
    def tokens(self) -> dict[str, str]:
        """As templates name them."""
        return {"bos_token": self.bos, "eos_token": self.eos}


def read_template(folder: Path) -> TemplateSource | None:
    """The chat template of a model folder, None if it has none."""
    config = read_json(folder / "tokenizer_config.json")
    source = config.get("chat_template")
    if isinstance(source, list):
        records = (each for each in source if isinstance(each, dict))
        default = (each.get("template") for each in records if each.get("name") == "default")
        source = next(default, None)
    file = folder / "chat_template.jinja"
    if (data := read_bytes(file, MAX_TEMPLATE_BYTES)) is not None:
        try:
            source = data.decode()
        except UnicodeDecodeError as error:
            refuse(file, f"it is not text ({error})")
    else:
        source = read_json(folder / "chat_template.json").get("chat_template") or source
    if not isinstance(source, str):
        return None
    bos, eos = (content_of(config.get(f"{name}_token")) or "" for name in ("bos", "eos"))
    return TemplateSource(source, bos, eos)


class RunningProbe:
    """A probe running in a child process."""

    def __init__(self, template: TemplateSource) -> None:
        self.template = template
        self._process = subprocess.Popen(
            child.python_module(__name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def result(self) -> Chat:
        """The probed chat; the plain format, with a note, if the template cannot be used."""
        t = self.template
        request = json.dumps({"source": t.source, "bos": t.bos, "eos": t.eos}).encode()
        try:
            answer, _ = self._process.communicate(request, timeout=WALL_LIMIT_S)
            value = json.loads(answer)
        except (subprocess.TimeoutExpired, ValueError):
            self._process.kill()
            self._process.wait()
            value = {"error": "it exceeded its time or memory limit"}
        if "error" in value:
            note = f"the model's chat template is not used: {value['error']}"
            return Chat(PLAIN.roles, from_model=False, fingerprint=PLAIN.fingerprint, notes=(note,))
        return _from_json(value, fingerprint(t.source, t.bos, t.eos))

    def close(self) -> None:
        """Ends the probe if it still runs; a pending `result` then returns the plain format."""
        if self._process.poll() is None:
            self._process.kill()


def start_probe(folder: Path) -> RunningProbe | None:
    """Starts probing the folder's template; None if it has none."""
    template = read_template(folder)
    return None if template is None else RunningProbe(template)


def probe_here(template: TemplateSource) -> Chat:
    """Probes in this process, without limits; raises `ProbeError`."""
    from sgc.runtime.engine.text.template_render import renderer

    render = renderer(template.source, template.tokens)
    reasoning = reasoning_of(template.source)
    return replace(probe(render, template.bos), calls=calls_of(render), reasoning=reasoning)


def _from_json(value: dict[str, Any], digest: str) -> Chat:
    roles = {name: Role(prefix, suffix) for name, (prefix, suffix) in value.pop("roles").items()}
    return Chat(roles, **value, fingerprint=digest)


def limit_self(cpu_s: int) -> None:
    """Bounds this process's processor time, memory and files."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))


def main() -> None:
    garbage.collect()
    request = json.load(sys.stdin)
    limit_self(CPU_LIMIT_S)
    answer: dict[str, Any]
    try:
        chat = probe_here(TemplateSource(**request))
    except (ProbeError, MemoryError, RecursionError) as error:
        answer = {"error": str(error)[:500] or type(error).__name__}
    else:
        answer = {
            "roles": {name: [role.prefix, role.suffix] for name, role in chat.roles.items()},
            "default_system": chat.default_system,
            "prefix_stable": chat.prefix_stable,
            "calls": chat.calls,
            "reasoning": chat.reasoning,
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
