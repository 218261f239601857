"""Checks and times the engine on a GPU: kernels, steps of a model of 8B, the papers' workloads.

    python -P benches/gpu/gpu.py [--parts checks,kernels,steps,workloads] [--attention NAMES]
        [--minutes 9] [--out FILE.json]

On a bare machine it takes less than `--minutes`: what does not fit, or fails, is left out and said.
It prints a table last, and writes a plot, and JSON whenever something was measured. `--tiny` runs
the same on the CPU in minutes, where the times mean nothing, to try the bench itself.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

PARTS = ("checks", "kernels", "steps", "workloads")
PACKAGES = ("torch", "triton", "flashinfer-python", "transformers", "numpy")
TESTS = ["tests/kernels/triton", "tests/engine/core/model/test_device.py"]
ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    options = parse_arguments()
    if options.tiny:
        os.environ["TRITON_INTERPRET"] = "1"  # before anything imports triton
    import torch

    if not options.tiny and not torch.cuda.is_available():
        sys.exit("torch sees no GPU here: `sgc doctor` says why; --tiny tries the bench on the CPU")
    Bench(options, torch.device("cpu") if options.tiny else torch.device("cuda", 0)).run()


class Bench:
    def __init__(self, options: argparse.Namespace, device: Any) -> None:
        self._options, self._device = options, device
        self._ends_at = time.perf_counter() + options.minutes * 60
        self._made: tuple[str, Any] | None = None  # the last model, and what attends in it
        self.found: list[Any] = []
        self.notes: list[str] = []

    def run(self) -> None:
        import torch
        from device_kernels import FULL, TINY, limits_found, measure_limits

        size = TINY if self._options.tiny else FULL
        dtype = torch.float32 if self._options.tiny else torch.bfloat16
        limits = measure_limits(size, self._device, dtype)
        self._take("limits", lambda: limits_found(limits))
        for part in self._options.parts:
            getattr(self, f"_{part}")(size, limits, dtype)
        self._report()

    def _checks(self, *_: Any) -> None:
        """The tests of kernels and of the device's way, on this device."""
        command = [sys.executable, "-P", "-m", "pytest", "-q", "--maxfail", "9", *TESTS]
        marks = ["-m", "not slow", "-n", "4"] if not self._options.tiny else ["-k", "sizes"]
        tests = subprocess.Popen(
            [*command, *marks], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            said, _ = tests.communicate(timeout=max(30.0, self._left_s / 3))
        except subprocess.TimeoutExpired:  # their workers, too, hold what they write to
            os.killpg(tests.pid, signal.SIGKILL)
            said = tests.communicate()[0] + "\nthe tests took too long, and were ended"
        self.notes.append(f"checks ended with {tests.returncode}: {said[-3000:]}")

    def _kernels(self, size: Any, limits: Any, dtype: Any) -> None:
        from device_kernels import agreement, attention, sampling

        for name in self._options.attention:
            place = self._place(name)
            self._take(f"agreement, {name}", lambda p=place: agreement(p, size, dtype))
            self._take(name, lambda p=place: attention(p, size, limits, dtype))
        self._take("sampling", lambda: sampling(size, limits, self._device))

    def _steps(self, size: Any, limits: Any, dtype: Any) -> None:
        """The first kind of attention last, as the workloads take its model."""
        from device_steps import host, steps

        scale = 0.02 if self._options.tiny else 0.5
        for name in reversed(self._options.attention):
            make = lambda n=name: self._runner(n, size, dtype)  # noqa: E731
            self._take(f"steps, {name}", lambda m=make: steps(m(), size, limits), name)
            self._take(f"host, {name}", lambda m=make: host(m(), size, scale), name)

    def _workloads(self, size: Any, limits: Any, dtype: Any) -> None:
        from device_steps import workloads

        name = self._options.attention[0]
        n, scale = (2, 0.02) if self._options.tiny else (64, 1.0)
        self._take("workloads", lambda: workloads(self._runner(name, size, dtype), n, scale), name)

    def _runner(self, name: str, size: Any, dtype: Any) -> Any:
        """One at a time: its pool takes the memory that is left."""
        import device_steps
        import torch

        if self._made is not None and self._made[0] == name:
            return self._made[1]
        self._made = None
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        tiny = self._options.tiny
        of_model = device_steps.TINY_MODEL if tiny else device_steps.FULL_MODEL
        pool = 4000 if tiny else None
        made = device_steps.make_runner(self._place(name), size, of_model, dtype, pool)
        self._made = name, made
        return made

    def _place(self, attention: str) -> Any:
        from sgc.runtime.engine.model.device.places import Place

        return Place(self._device, attention)

    @property
    def _left_s(self) -> float:
        return self._ends_at - time.perf_counter()

    def _take(self, what: str, measure: Callable[[], Iterator[Any]], attention: str = "") -> None:
        """Takes measurements until the time is over, or one fails."""
        try:
            if self._left_s > 0:
                for found in measure():
                    self.found.append({**asdict(found), "attention": attention})
                    print(line_of(self.found[-1]), file=sys.stderr, flush=True)
                    self._save()
                    if self._left_s < 0:
                        break
        except Exception as error:  # the others may be measured all the same
            traceback.print_exc()
            self.notes.append(f"{what} failed: {type(error).__name__}: {error!s:.500}")
        if self._left_s < 0:
            self.notes.append(f"the time was over in {what}: what follows there is left out")
        self._save()

    def _save(self) -> None:
        report = {
            "date": datetime.date.today().isoformat(),
            "command": "python -P benches/gpu/gpu.py " + " ".join(sys.argv[1:]),
            "machine": machine(self._device),
            "found": self.found,
            "notes": self.notes,
        }
        if self._options.out:
            self._options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")

    def _report(self) -> None:
        self._save()
        if self._options.out:
            plot(self.found, self._options.out.with_suffix(".png"))
        print("\n".join(map(line_of, self.found)))
        print("\n".join(self.notes))
        print(json.dumps(machine(self._device)))


def line_of(found: dict[str, Any]) -> str:
    share = "" if found["share"] is None else f"{found['share']:6.0%} of the limit"
    part = f"{found['part']} {found['attention']}".strip()
    return f"{part:<24} {found['case']:<44} {found['value']:>10.3f} {found['unit']:<10} {share}"


def machine(device: Any) -> dict[str, Any]:
    import torch

    told: dict[str, Any] = {"device": "cpu"}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        told = {"device": properties.name, "memory_gib": properties.total_memory // 2**30}
        told["cuda"] = torch.version.cuda
    versions = {name: _version(name) for name in PACKAGES}
    return {**told, "python": sys.version.split()[0], "cores": os.cpu_count(), **versions}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def plot(found: Iterable[dict[str, Any]], path: Path) -> None:
    """Shares of the machine's limits, as bars."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("matplotlib is not installed: no plot", file=sys.stderr)
        return
    shown = [one for one in found if one["share"] is not None]
    figure, axes = plt.subplots(figsize=(9, 0.25 * len(shown) + 1.2))
    names = [f"{one['part']} {one['attention']}: {one['case']}" for one in shown]
    axes.barh(names, [100 * one["share"] for one in shown], color="#4878a8")
    axes.invert_yaxis()
    axes.set_xlabel("share of what the machine allows, %")
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    listed = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--parts", type=listed, default=list(PARTS))
    parser.add_argument("--attention", type=listed, default=["flashinfer", "triton"])
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, help="JSON; a plot is written beside it")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no parts called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.tiny:
        options.attention = ["triton"]
    return options


if __name__ == "__main__":
    main()
