"""Reads how a folder of sentence-transformers makes a text's vector, without that package.

`modules.json` lists the steps after the model; `1_Pooling/config.json` says which hidden states
count. Vectors are always normalized. Unsupported steps and settings are refused by name, for
embeddings only: the model can still generate.
"""

from __future__ import annotations

from pathlib import Path

from sgc.runtime.engine.names import DEFAULT_POOLING, FIRST_TOKEN, LAST_TOKEN, MEAN, Pooling
from sgc.runtime.engine.text.json_files import Json, read_json, read_objects, refuse

MODULES = "modules.json"
PROMPTS = "config_sentence_transformers.json"
_MODES = {
    "pooling_mode_lasttoken": LAST_TOKEN,
    "pooling_mode_mean_tokens": MEAN,
    "pooling_mode_cls_token": FIRST_TOKEN,
}
_NAMED = {"lasttoken": LAST_TOKEN, "mean": MEAN, "cls": FIRST_TOKEN}  # of newer versions
_STEPS = ("Transformer", "Pooling", "Normalize")


def pooling_of(folder: Path | None, asked: str) -> Pooling:
    """asked: one of `POOLINGS`, or "auto", which is the folder's, else the last token. Raises
    `LoadError` for a file that is malformed."""
    if asked != "auto":
        return Pooling(asked, "--pooling")
    modules = None if folder is None else read_objects(folder / MODULES)
    if folder is None or modules is None:
        return DEFAULT_POOLING
    return _of(folder, modules)


def _of(folder: Path, modules: list[Json]) -> Pooling:
    steps = [str(module.get("type")).rpartition(".")[2] for module in modules]
    other = [step for step in steps if step not in _STEPS]
    if other or steps[:2] != ["Transformer", "Pooling"] or steps.count("Pooling") > 1:
        found = ", ".join(steps)[:200] or "nothing"
        return _refused(f"{MODULES} of its folder says {found}, and this engine does "
                        f"{', '.join(_STEPS)}, in this order")  # fmt: skip
    path = modules[1].get("path")
    if not isinstance(path, str) or Path(path).name != path or path in ("", ".."):
        refuse(folder / MODULES, "the path of its Pooling must be the name of a folder")
    name = f"{path}/config.json"
    modes = _modes(read_json(folder / path / "config.json"))
    if len(modes) != 1 or modes[0] not in (*_MODES, *_NAMED):
        found = " and ".join(modes) or "no pooling"
        return _refused(f"{name} of its folder asks for {found[:200]}, and this engine does one of "
                        f"{', '.join(_MODES)}")  # fmt: skip
    return Pooling((_MODES | _NAMED)[modes[0]], name, warning=_warning(folder))


def _modes(config: Json) -> list[str]:
    named = config.get("pooling_mode")
    if named is not None:
        return [str(named)]
    return [name for name, is_on in config.items() if name.startswith("pooling_mode_") and is_on]


def _warning(folder: Path) -> str:
    name = read_json(folder / PROMPTS).get("default_prompt_name")
    if name is None:
        return ""
    return (
        f"{PROMPTS} has a default prompt ({str(name)[:80]!r}), which is not put before texts to "
        "embed: send it with them"
    )


def _refused(why: str) -> Pooling:
    return Pooling(
        "", refusal=f"this engine gives no embeddings of this model: {why}; `sgc serve --pooling "
        "last` or `mean` asks for what the folder does not say",
    )  # fmt: skip
