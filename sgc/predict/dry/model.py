"""A model without weights, for predictions: its tokenizer and chat template.

It has the capabilities of an engine that serves it; loads no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sgc.runs.endpoints import require_engine
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat, RoleFormat

if TYPE_CHECKING:
    from sgc.runtime.engine.guides.compiler import Compiler
    from sgc.runtime.engine.text.tokenizer import Tokenizer

DEFAULT_CONTEXT = 32768  # for models that do not state theirs, as in the engine


@dataclass(frozen=True)
class OpenedModel:
    """A model's tokenizer, and the capabilities of its engine."""

    tokenizer: Tokenizer
    capabilities: Capabilities

    @cached_property
    def compiler(self) -> Compiler:
        """Compiles constraints for this vocabulary."""
        from sgc.runtime.engine.guides.compiler import Compiler

        return Compiler(self.tokenizer, self.tokenizer.vocab_size)

    def n_tokens(self, text: str) -> int:
        """Counts the tokens of a text that follows others."""
        return len(self.tokenizer.encode_literal(text)) if text else 0


def open_model(name: str | None) -> OpenedModel:
    """Opens a Hugging Face folder or id; None: the default model.

    Raises LoadError if it is not a model, SgcError if the engine's packages are missing.
    """
    require_engine()
    from sgc.runtime.engine.model.models import resolve
    from sgc.runtime.engine.text.json_files import read_json
    from sgc.runtime.engine.text.template import PLAIN
    from sgc.runtime.engine.text.template_child import start_probe
    from sgc.runtime.engine.text.tokenizer import load_tokenizer

    source = resolve(name)
    probe = start_probe(source.tokenizer_folder)
    tokenizer = load_tokenizer(source.tokenizer_folder)
    chat = PLAIN if probe is None else probe.result()
    config = {} if source.folder is None else read_json(source.folder / "config.json")
    roles = {key: RoleFormat(role.prefix, role.suffix) for key, role in chat.roles.items()}
    told = Capabilities(
        model=source.name,
        chat=ChatFormat(roles, chat.default_system),
        max_context=int(config.get("max_position_embeddings") or DEFAULT_CONTEXT),
        special_tokens=tokenizer.special_tokens,
        fingerprints={"tokenizer": tokenizer.fingerprint, "template": chat.fingerprint},
        unconditional=True,
        prefetches=True,
    )
    return OpenedModel(tokenizer, told)
