"""The tracer's session: what the program reads and changes outside of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from sgc.core.watching import unhooked
from sgc.runtime.executor.interface.tools import ToolImpl
from sgc.tracing.convert.in_place import InPlace, Unconverted
from sgc.tracing.overlays.namespace import Overlays
from sgc.tracing.pieces.made import Sites
from sgc.tracing.recording.late_names import LateNames
from sgc.tracing.watch.hook import meet_read, refuse_act
from sgc.tracing.watch.outside import OutsideTexts


class Outside(LateNames):
    """A tracer's session that protects the program's surroundings, and knows texts from outside.

    in_place: the functions converted in place.
    """

    in_place: InPlace | None

    def __init__(self, program: str, sites: Sites) -> None:
        super().__init__(program)
        self.sites = sites
        self._outside = OutsideTexts()
        self._overlays = Overlays(sites=sites)

    @unhooked
    def refuse_changes(self) -> None:
        """Stops the trace if the program has changed data outside itself."""
        self._overlays.refuse_changes()

    @unhooked
    def refuse_changed_objects(self) -> None:
        self._overlays.refuse_changed_objects()

    def watch(self, name: str, value: Any) -> None:
        """Notes a value that the program must not change. name: the variable that holds it."""
        self._overlays.watch(name, value, is_copied=False)

    def watch_code(self, code: CodeType, names: dict[str, Any]) -> None:
        """Notes what code reads from the names over which it runs, as for a function."""
        self._overlays.watch_code(code, names)

    def meet_surroundings(self, what: str, is_change: bool = False) -> None:
        """Refuses a change of the process by the program's own code, and a question about the
        process unless it is allowed."""
        (refuse_act if is_change else meet_read)(what)

    def is_outside(self, value: Any) -> bool:
        return self._overlays.is_outside(value)

    @unhooked
    def allow_tool(self, tool: ToolImpl) -> None:
        """Stops the trace if the tool changes what the program reads of its modules."""
        self.sites.of_tools.calls(tool.name, tool.call)

    @unhooked
    def put_back(self) -> None:
        """Undoes the run's changes to objects outside the program."""
        self._overlays.put_back()

    def note_own(self, texts: Mapping[int, str]) -> None:
        """Records the program's own texts, by id."""
        self._outside.note_own(texts)

    def note(self, bound: Mapping[str, Any]) -> None:
        """Records the texts of bound arguments, which are values from outside too."""
        self._outside.add(bound)
        for name, value in bound.items():
            self._overlays.watch(name, value)

    def note_outside(self, values: Any) -> None:
        """Records the texts in values from outside, such as a mapped call's arguments."""
        self._outside.add(values)

    @unhooked
    def body(self, python: FunctionType) -> Callable[..., Any]:
        return self._overlays.rebuild(python, self.is_counted)

    def entered(self, function: FunctionType) -> Callable[..., Any]:
        return self._overlays.entered(function)

    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        return self._overlays.originals(names)

    def is_outside_changed(self) -> bool:
        return self._overlays.is_changed()

    def meet(self, frame: FrameType) -> None:
        if self.in_place is None:
            return
        if self.in_place.needs(frame):
            self.end(Unconverted(frame.f_globals))
        elif self.in_place.has(frame.f_globals):
            self._overlays.watch_code(frame.f_code, frame.f_globals)
