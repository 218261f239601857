"""Writes a GGUF file's settings, tokenizer and template, but not its weights, as a model folder.
Run as a module, it is a child with bounds on time, memory and files, for the file may be anyone's.

    start.py … sgc.runtime.engine.model.checkpoints.gguf.unpack FOLDER FILE…

It answers with a JSON object on stdout, and imports no torch. The weights stay where they are: the
folder has links to the files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sgc.errors import LoadError, SgcError
from sgc.runtime.engine.model.checkpoints.gguf.files import read
from sgc.runtime.engine.model.checkpoints.gguf.settings import architecture_of, config_of
from sgc.runtime.engine.model.checkpoints.gguf.vocabulary import (
    end_ids,
    special_ids,
    write_tokenizer,
)
from sgc.runtime.engine.model.weight_files import check_sizes
from sgc.runtime.engine.process import garbage

CPU_LIMIT_S = 120
MEMORY_LIMIT_BYTES = 4 * 1024**3
_FILE_LIMIT_BYTES = 256 * 1024**2
_N_FILES = 256


def unpack(paths: Sequence[Path], folder: Path) -> None:
    """Raises `LoadError` for a file that is damaged, or that this engine does not read."""
    gguf = read(paths)
    config = config_of(gguf)
    check_sizes(gguf.path, config, gguf.headers())
    ids = special_ids(gguf)
    n_tokens = len(gguf.values["tokenizer.ggml.tokens"])
    if n_tokens > config["vocab_size"]:
        raise LoadError(
            f"{gguf.path}: it has {n_tokens} tokens, and its table {config['vocab_size']} rows"
        )
    write_tokenizer(gguf, architecture_of(gguf)[1].architecture, folder)
    (folder / "config.json").write_text(json.dumps({**config, **ids}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end_ids(gguf)}))
    for path in paths:
        (folder / path.name).symlink_to(path)


def main() -> None:
    garbage.collect()
    _limit_self()
    folder, *paths = map(Path, sys.argv[1:])
    answer: dict[str, str] = {}
    try:
        unpack(paths, folder)
    except SgcError as error:
        answer = {"error": error.message, "hint": error.hint}
    except ImportError as error:  # of an older transformers
        answer = {
            "error": f"{paths[0]} needs newer packages to be read: {error!s:.300}",
            "hint": "pip install --upgrade 'sgc[gguf]'",
        }
    except BaseException as error:  # also a library's panic
        answer = {
            "error": f"{paths[0]} cannot be used: {type(error).__name__}: {error!s:.500}",
            "hint": "",
        }
    json.dump(answer, sys.stdout)


def _limit_self() -> None:
    import resource

    limits = {
        resource.RLIMIT_CPU: CPU_LIMIT_S,
        resource.RLIMIT_AS: MEMORY_LIMIT_BYTES,
        resource.RLIMIT_FSIZE: _FILE_LIMIT_BYTES,
        resource.RLIMIT_NOFILE: _N_FILES,
    }
    for kind, most in limits.items():
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
