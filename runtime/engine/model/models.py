"""Resolves a model's name to its folder; the only place that names the default model.

Runs nothing from a model folder and reads no pickle: weights are safetensors or GGUF only. Called
by the server; imports neither torch nor transformers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf.files import SUFFIX, files_of, is_gguf
from sgc.runtime.engine.model.model_files import check_files

DEFAULT_NAMES = ("default", "")
# A small model that ships with the package; `tools/tiny_model` made it.
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "assets" / "sgc_tiny"
FAKE_NAME = "fake"
ALLOWED_FILES = ["*.safetensors", "*.json", "tokenizer.model", "*.jinja"]
HUB_ERRORS = {
    "RepositoryNotFoundError": "no such model on the hub (or it is private)",
    "GatedRepoError": "its conditions are not accepted on the hub (a token goes in HF_TOKEN)",
    "HFValidationError": "not a hub id",
}
PICKLE_SUFFIXES = frozenset({".bin", ".pt", ".pth", ".pkl", ".ckpt"})


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on disk: the folders of its weights (None: the fake model) and its tokenizer."""

    name: str
    folder: Path | None
    tokenizer_folder: Path

    @property
    def is_fake(self) -> bool:
        return self.folder is None


def resolve(name: str | None) -> ModelSource:
    """Finds a model by name: "default", "fake", a local folder, a GGUF file, or a hub id.

    Raises `LoadError` naming what was tried.
    """
    if name == FAKE_NAME:
        return ModelSource(FAKE_NAME, None, DEFAULT_FOLDER)
    if name is None or name in DEFAULT_NAMES:
        return _checked(ModelSource("sgc-tiny", DEFAULT_FOLDER, DEFAULT_FOLDER))
    path = Path(name).expanduser()
    if path.is_dir() and not is_gguf(path):
        return _checked(ModelSource(path.resolve().name, path.resolve(), path.resolve()))
    if path.is_dir() or path.suffix == SUFFIX:
        from sgc.runtime.engine.model.checkpoints.gguf.folder import unpacked

        folder = unpacked(files_of(path))
        name = path.resolve().name if path.is_dir() else path.stem
        return ModelSource(name, folder, folder)
    if path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise LoadError(
            f"no model folder at {path}",
            hint="give a folder with config.json and *.safetensors, a GGUF file, a hub id, "
            '"default" or "fake"',
        )
    folder = _from_hub(name)
    return _checked(ModelSource(name, folder, folder))


def _checked(source: ModelSource) -> ModelSource:
    assert source.folder is not None
    names = {path.name for path in source.folder.iterdir()}
    if "config.json" not in names:
        raise LoadError(f"{source.folder} is not a model folder: it has no config.json")
    if not any(name.endswith(".safetensors") for name in names):
        pickled = sorted(name for name in names if Path(name).suffix in PICKLE_SUFFIXES)
        found = f"only pickled weights ({', '.join(pickled[:3])})" if pickled else "no weights"
        raise LoadError(
            f"{source.folder} holds {found}; only *.safetensors are loaded",
            hint="pickled weights can run code when loaded; convert them to safetensors first",
        )
    check_files(source.folder)
    return source


_PROVIDERS = {"gpt-3": "openai", "gpt-4": "openai", "gpt-5": "openai", "claude-": "anthropic"}


def _from_hub(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise LoadError(
            f"no folder {name!r}, and huggingface_hub is not installed to fetch it",
            hint="pip install 'sgc[engine]'",
        ) from error
    errors: list[Exception] = []
    for offline in (False, True):
        try:
            return Path(
                snapshot_download(name, allow_patterns=ALLOWED_FILES, local_files_only=offline)
            )
        except Exception as error:  # errors of the library or the network, and bad ids
            errors.append(error)
    provider = next((each for start, each in _PROVIDERS.items() if name.startswith(start)), "")
    asked = f"; a provider's model is asked: sgc run --engine {provider}:{name}" if provider else ""
    reason = HUB_ERRORS.get(type(errors[0]).__name__, "offline (or no such model)")
    raise LoadError(
        f"no model {name!r}: no folder of that name, {reason}, and not in the local cache",
        hint='give a local folder, a hub id that can be reached, "default" or "fake"' + asked,
    ) from errors[0]
