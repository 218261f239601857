"""How far a job is: a bar on a terminal, a JSON line a minute elsewhere."""

from __future__ import annotations

import json
import sys
import threading
from time import monotonic
from typing import Any

import click

from sgc.runs.jobs.tally import Tally

EVERY_S = 60.0
CLOSING_S = 5.0


def say(line: str) -> None:
    """Prints a line on stderr, above the bar if one is shown there."""
    if not sys.stderr.isatty():
        click.echo(line, err=True)
        return
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def open_progress(how: str | None, tally: Tally, quiet: bool) -> Progress:
    """how: one of `job_options.PROGRESS`; quiet: shows nothing unless `how` is given."""
    if how in (None, "auto"):
        how = "none" if quiet else "bar" if sys.stderr.isatty() else "json"
    return _Bar(tally) if how == "bar" else _Lines(tally) if how == "json" else Progress(tally)


class Progress:
    """Shows nothing."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._start_s = monotonic()

    def update(self) -> None:
        """Called after each row, on the loop's thread."""

    def close(self) -> None: ...

    def told(self) -> dict[str, Any]:
        tally = self._tally
        elapsed_s = monotonic() - self._start_s
        rate = tally.n_ended / elapsed_s if elapsed_s else 0.0
        left = tally.n_rows - tally.n_done
        found = {
            "rows": tally.n_rows,
            "done": tally.n_done,
            "failed": tally.n_all_failed,
            "elapsed_s": round(elapsed_s, 1),
            "rows_per_s": round(rate, 2),
            "eta_s": round(left / rate) if rate else None,
        }
        if tally.cost_usd is not None:
            found["cost_usd"] = round(tally.cost_usd, 6)
        return found


class _Lines(Progress):
    """A line each minute, from a thread of its own, since no row may end for longer than that."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="sgc-progress", daemon=True)
        self._thread.start()

    def _tell(self) -> None:
        while not self._is_over.wait(EVERY_S):
            say(json.dumps(self.told()))

    def close(self) -> None:
        """No line comes after this, unless printing one takes longer than `CLOSING_S`."""
        self._is_over.set()
        self._thread.join(CLOSING_S)


class _Bar(Progress):
    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        from tqdm import tqdm

        self._bar = tqdm(total=tally.n_rows, initial=tally.n_before, unit="row")

    def update(self) -> None:
        tally = self._tally
        if tally.n_all_failed:
            self._bar.set_postfix(failed=tally.n_all_failed, refresh=False)
        self._bar.update()

    def close(self) -> None:
        self._bar.close()
