"""Engines of tiny vision-language models in this process, and transformers' own answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as hf
from vision_folders import TOKENS

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.images.reader import ImageReader, load_reader
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import Prepared, prepare_all
from sgc.runtime.engine.requests.request import Update
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer
from sgc.runtime.engine.worker.load import WorkerConfig, load
from sgc.runtime.engine.worker.wire import request_of


class Engine:
    """A model's core, with what prepares its requests. options: of `WorkerConfig`."""

    def __init__(self, folder: Path, token: str | None = None, **options: Any) -> None:
        given = {"pool_tokens": 4096, "check": True} | options
        config = WorkerConfig(tokenizer_folder=str(folder), model_folder=str(folder), **given)
        self.core = load(config).core
        self.tokenizer: Tokenizer = load_tokenizer(folder)
        limits = self.core.limits
        reader = load_reader(folder, token)
        self.limits = ServerLimits(
            limits.max_context, limits.pool_tokens, limits.vocab_size, images=reader or "none"
        )
        self._n = 0

    @property
    def reader(self) -> ImageReader:
        assert isinstance(self.limits.images, ImageReader)
        return self.limits.images

    def prepared(self, *parts: str | bytes, n: int = 8, text: str = "", **more: Any) -> Prepared:
        """parts: texts and image files, in order. Raises `RequestError`."""
        request = more.pop("request", None) or pb.Request(
            generate=pb.Generate(
                sampling=pb.Sampling(
                    max_tokens=n, top_p=1, top_k=-1, repetition_penalty=1, ignore_eos=True
                )
            )
        )
        for part in parts:
            segment = request.prompt.segments.add()
            if isinstance(part, bytes):
                segment.images.images.append(part)
                segment.images.text = text
            else:
                segment.text.text = part
        (found,) = prepare_all([request], self.tokenizer, self.limits)
        if isinstance(found, RequestError):
            raise found
        return found

    def start(self, prepared: Prepared) -> int:
        self._n += 1
        prepared.work.id = self._n
        self.core.submit(request_of(prepared.work))
        return self._n

    def finish(self) -> dict[int, list[Update]]:
        found: dict[int, list[Update]] = {}
        while self.core.has_work:
            for update in self.core.step():
                found.setdefault(update.id, []).append(update)
        return found

    def finish_all(self, prepared: Prepared) -> list[Update]:
        number = self.start(prepared)
        return self.finish()[number]

    def ask(self, *parts: str | bytes, n: int = 8, text: str = "") -> list[int]:
        """The ids that are generated, greedily."""
        number = self.start(self.prepared(*parts, n=n, text=text))
        return ids_of(self.finish()[number])


def ids_of(updates: list[Update]) -> list[int]:
    assert updates[-1].error is None, updates[-1].error
    return [i for update in updates for i in update.new_ids]


class Reference:
    """transformers' own class and processors."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.model = hf.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
        self.tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        self.images = hf.AutoImageProcessor.from_pretrained(folder, backend="pil")

    @torch.inference_mode()
    def ask(self, text: str, pictures: list[Any], n: int = 8) -> list[int]:
        """text: with the image token for each picture."""
        inputs = self._inputs(text, pictures)
        length = inputs["input_ids"].shape[1]
        found = self.model.generate(
            **inputs, max_new_tokens=n, min_new_tokens=n, do_sample=False, eos_token_id=None
        )
        ids: list[int] = found[0, length:].tolist()
        return ids

    def _inputs(self, text: str, pictures: list[Any]) -> Any:
        if self.name == "llava":
            processor = hf.LlavaProcessor.from_pretrained(self.folder, backend="pil")
            return processor(images=pictures, text=text, return_tensors="pt")
        if self.name in ("idefics3", "smolvlm"):
            # SmolVLM's own processor needs a video processor, so torchvision.
            processor = hf.Idefics3Processor(self.images, self.tokenizer, image_seq_len=4)
            return processor(images=[pictures], text=[text], return_tensors="pt")
        arrays = self.images(pictures, return_tensors="pt")
        token = TOKENS[self.name]
        for grid in arrays["image_grid_thw"]:
            text = text.replace(token, "\0" * int(grid.prod() // 4), 1)
        inputs = self.tokenizer(text.replace("\0", token), return_tensors="pt")
        kinds = (inputs["input_ids"] == self.model.config.image_token_id).int()
        return {**inputs, **arrays, "mm_token_type_ids": kinds}
