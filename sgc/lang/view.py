"""SGLang's stream executor, as far as outside code reads it, on top of our states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sgc.core.threads import in_thread


class State(Protocol):
    """The part of a state that a view needs."""

    @property
    def is_finished(self) -> bool: ...

    def text(self) -> str: ...

    def messages(self) -> list[dict[str, Any]]: ...

    def all_variables(self) -> Mapping[str | None, Any]: ...

    def sync(self) -> None: ...

    def error(self) -> BaseException | None: ...

    def get_meta_info(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any: ...

    def __setitem__(self, name: str, value: Any) -> None: ...


class StreamExecutorView:
    """The attributes of SGLang's `StreamExecutor` that programs read."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def text_(self) -> str:
        return self._state.text()

    @property
    def messages_(self) -> list[dict[str, Any]]:
        return self._state.messages()

    @property
    def variables(self) -> Mapping[str | None, Any]:
        return self._state.all_variables()

    @property
    def is_finished(self) -> bool:
        return self._state.is_finished

    def sync(self) -> None:
        self._state.sync()

    def text(self) -> str:
        return self._state.text()

    def get_var(self, name: str) -> Any:
        return self._state[name]

    def set_var(self, name: str, value: Any) -> None:
        self._state[name] = value

    def get_meta_info(self, name: str, timeout: float | None = None) -> Any:
        """The state's meta info; raises TimeoutError after `timeout` seconds."""
        if timeout is None:
            return self._state.get_meta_info(name)
        return in_thread(lambda: self._state.get_meta_info(name), "sgc-meta").result(timeout)

    def error(self) -> BaseException | None:
        return self._state.error()

    def end(self) -> None:
        return None
