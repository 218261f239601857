"""A backend as a program's author writes one."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any


def made(sgl: ModuleType, **more: Any) -> Any:
    """A backend that writes down its calls, with a few hooks more."""
    from sglang.lang.backend.base_backend import BaseBackend
    from sglang.lang.choices import ChoicesDecision

    class Own(BaseBackend):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[tuple[str, Any]] = []
            self.params: list[Any] = []
            self.ended = threading.Event()

        def note(self, hook: str, s: Any) -> None:
            self.calls.append((hook, getattr(s, "text_", s)))

        def generate(self, s, sampling_params):
            self.note("generate", s)
            self.params.append(sampling_params)
            texts = [f" reply {len(s.text_)}"] * sampling_params.n
            return texts if sampling_params.n > 1 else texts[0], {"n": len(s.text_), "sid": s.sid}

        def generate_stream(self, s, sampling_params):
            self.note("generate_stream", s)
            for index, piece in enumerate(("a", "b", "", "c")):
                yield piece, {"index": index}

        def select(self, s, choices, temperature, choices_method=None):
            self.note("select", (s.text_, tuple(choices), temperature, repr(choices_method)))
            return ChoicesDecision(choices[-1], {"scores": [1, 2]})

        def commit_lazy_operations(self, s):
            self.note("commit", s)

        def cache_prefix(self, prefix_str):
            self.note("cache_prefix", prefix_str)

        def end_program(self, s):
            self.note("end_program", s)
            self.ended.set()

    for name, hook in more.items():
        setattr(Own, name, hook)
    return Own()
