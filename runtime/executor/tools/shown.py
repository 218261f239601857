"""Shows what a program prints, logs and warns of: the op `show`."""

from __future__ import annotations

from sgc.ir.graph import Loc, Node
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.tools import Shown
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.tools.tool_calls import Caller


async def show_text(run: Caller, node: Node) -> None:
    """Shows the text of a node when it is its turn."""
    place = run.tools.order.begin(node)

    async def write() -> None:
        loc = node.loc or Loc("", 0)
        told = node.text("to"), node.text("name"), run.field(node, "level")
        text = str(run.field(node, "text"))
        try:
            show(Shown(text, *told, loc.file, loc.line, loc.function), run.context.options)
        except OSError:
            raise
        except Exception as error:  # of a log's handler, or of a warning that is to be an error
            raise Failed.of("", error, str(node.loc or "")).error() from error

    await run.tools.in_turn(run, node, place, write)


def show(shown: Shown, options: RunOptions) -> None:
    """Gives it to who takes it in this run, else shows it as Python would."""
    if options.on_show is not None:
        options.on_show(shown)
    else:
        shown.write()
