"""Makes the disk behind a model's cache, as `--kv-dir` asks for it (`disk/tier.py`)."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from sgc.errors import LoadError
from sgc.runtime.engine.disk.folder import KVFolder, own_folder
from sgc.runtime.engine.disk.keys import files_digest, fingerprint
from sgc.runtime.engine.model.checkpoints.gguf.files import SUFFIX
from sgc.runtime.engine.model.weight_files import weight_files
from sgc.runtime.engine.names import StepOptions

if TYPE_CHECKING:  # torch, and the disk's libraries, are imported only where they are needed
    from sgc.runtime.engine.disk.pages import PageBytes
    from sgc.runtime.engine.disk.tier import DiskTier
    from sgc.runtime.engine.model.runner import ModelRunner


class Disk:
    """folder: the model's, whose files are read on a thread while it is loaded; None: it has none.
    Does nothing if there is no --kv-dir."""

    def __init__(self, options: StepOptions, folder: str | None) -> None:
        self._options = options
        self._digest: Future[bytes] | None = None
        if options.kv_dir is not None and folder is not None:
            path = Path(folder)
            files = [path / "config.json", *weight_files(path), *path.glob(f"*{SUFFIX}")]
            self._digest = ThreadPoolExecutor(1, "weights-digest").submit(files_digest, files)

    def tier(self, pages: PageBytes, facts: tuple[str, ...]) -> DiskTier | None:
        """facts: how the model is computed; raises `SgcError`."""
        options = self._options
        if options.kv_dir is None:
            return None
        from sgc.runtime.engine.disk.costs import Costs
        from sgc.runtime.engine.disk.tier import DiskTier

        path = own_folder(Path(options.kv_dir))
        files = b"" if self._digest is None else self._digest.result()
        costs = Costs(options.chunk_tokens, pages.token_bytes)
        folder = KVFolder(path, options.kv_dir_bytes)
        return DiskTier(folder, fingerprint(files, *facts), pages, costs)

    def tier_of(self, runner: ModelRunner) -> DiskTier | None:
        if self._options.kv_dir is None:
            return None
        if str(runner.pool.device) != "cpu":
            raise LoadError(
                f"--kv-dir keeps K and V of a CPU engine, and this model is on {runner.device}",
                hint="choose --device cpu, or leave --kv-dir out",
            )
        if runner.states is not None:
            raise LoadError(
                f"--kv-dir keeps K and V, and {runner.name} has recurrent layers, whose states it "
                "does not keep",
                hint="leave --kv-dir out",
            )
        from sgc.runtime.engine.cache.page_bytes import HostPages

        facts = (
            runner.way.name, runner.dtype_name, runner.weights_name, runner.kv_name,
            str(runner.needs.deterministic), str(sorted(runner.pool.formats.items())),
            *_libraries(),
        )  # fmt: skip
        return self.tier(HostPages(runner.pool), facts)


def _libraries() -> tuple[str, ...]:
    """The versions of the libraries that decide results to the last bit."""
    import torch

    from sgc.kernels.cpu import library

    kernels = library.find()
    own = () if kernels is None else (kernels.path.name, kernels.isa.name)
    return torch.__version__, *own
