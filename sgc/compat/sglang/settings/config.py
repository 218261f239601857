"""SGLang's `global_config`: an object whose attributes programs read and set.

`default_backend` is sgc's default backend itself. Setting a value that cannot be honoured raises.
`enable_parallel_encoding` has no effect: joins always append the children's texts.
"""

from __future__ import annotations

from typing import Any

from sgc.errors import UsageError
from sgc.runs import endpoints

# Attributes that would change results, and the only value that is available here.
_FIXED = {
    "skip_special_tokens_in_output": True,
    "spaces_between_special_tokens_in_out": True,
}


class GlobalConfig:
    """Settings of the front end."""

    def __init__(self) -> None:
        self.verbosity = 0
        self.enable_precache_with_tracing = True
        self.enable_parallel_encoding = True
        self.skip_special_tokens_in_output = True
        self.spaces_between_special_tokens_in_out = True

    @property
    def default_backend(self) -> Any:
        """The backend of runs that name none; None until one is set or was needed."""
        found = endpoints.get_default_backend()
        return getattr(found, "own", found)  # a user's backend without its adapter

    @default_backend.setter
    def default_backend(self, backend: Any) -> None:
        endpoints.set_default_backend(backend)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and value != _FIXED[name]:
            raise UsageError(
                f"global_config.{name}={value!r} is not available; it is {_FIXED[name]!r}"
            )
        super().__setattr__(name, value)


global_config = GlobalConfig()
