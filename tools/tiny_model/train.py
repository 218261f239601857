"""Training: one command that makes the tokenizer and trains; it can be stopped and resumed.

    python -P tools/tiny_model train --minutes 100 --threads 2

Matrices are trained by Muon, embeddings and norms by AdamW; the learning rate warms up and falls
in a cosine over the time (or over `--tokens`, which is reproducible on one machine). Arithmetic
is bfloat16 with float32 weights, compiled if there is a C++ compiler. Nothing is pickled:
checkpoints are safetensors and JSON.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from tiny_model import tokenizer as tokenizers
from tiny_model.batches import IGNORED, WINDOW, Batch, batches
from tiny_model.corpus import STAGES
from tiny_model.model import Llama, Shape

CHECKPOINT_S = 180.0
PROGRESS_S = 10.0
MAX_STEP_S = 10.0  # that a step counts at most, in case the process was suspended
WARM_UP = 0.02  # share of the training
LAST_LR = 0.02  # share of the peak


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a training.

    tokens: train on so many tokens, instead of for some minutes; start: a model's folder, whose
    tokenizer and weights are trained on, on the texts of the last stage.
    """

    folder: Path
    minutes: float = 100.0
    tokens: int = 0
    device: str = "cpu"
    threads: int = 2
    workers: int = 1
    seed: int = 1
    layers: int = 4
    batch_tokens: int = 4096
    batches_a_step: int = 2
    matrix_lr: float = 0.02
    other_lr: float = 0.004
    compile: bool = True
    start: Path | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a training beside its tensors, kept in a checkpoint."""

    seed: int = 1
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    window: int = 0
    loss: float = 0.0

    def share(self, options: Options) -> float:
        """The share of the training that is done."""
        whole = options.tokens or options.minutes * 60
        return min(1.0, (self.tokens if options.tokens else self.seconds) / whole)


class Trainer:
    """The weights, their optimizers, and their files."""

    def __init__(self, options: Options, tokenizer: Tokenizer) -> None:
        torch.manual_seed(options.seed)
        self.options, self.ends = options, tokenizers.ends(tokenizer)
        self.shape = Shape(tokenizer.get_vocab_size(), n_layers=options.layers)
        self.model = Llama(self.shape).to(options.device)
        named = dict(self.model.named_parameters())
        matrices = {n: p for n, p in named.items() if p.dim() == 2 and "embed" not in n}
        others = [p for n, p in named.items() if n not in matrices]
        self.optimizers = {
            "muon": torch.optim.Muon(
                list(matrices.values()), weight_decay=0.01, adjust_lr_fn="original"
            ),
            "adamw": torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0),
        }
        self.peaks = {"muon": options.matrix_lr, "adamw": options.other_lr}
        has_compiler = shutil.which("g++") or shutil.which("clang++")
        is_compiled = options.compile and has_compiler
        self.loss = torch.compile(self._loss, dynamic=True) if is_compiled else self._loss
        self.progress = Progress(options.seed)

    def _loss(self, ids: Tensor, chosen: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(ids.device.type, torch.bfloat16):
            logits = self.model(ids, chosen)
        return F.cross_entropy(logits.float(), targets, reduction="sum", ignore_index=IGNORED)

    def compile(self) -> float:
        """Runs an empty batch, so that compilation does not count as training; returns seconds."""
        started = time.monotonic()
        ids = np.zeros((4, 64), dtype=np.int64)
        chosen = np.arange(128)
        self._backward([Batch(ids, chosen, np.zeros(128, dtype=np.int64), 0, 1)])
        self.model.zero_grad(set_to_none=True)
        return time.monotonic() - started

    def _backward(self, some: list[Batch]) -> float:
        """Accumulates the gradients of the batches' mean loss, and returns the loss."""
        n_chosen = sum(int((batch.targets != IGNORED).sum()) for batch in some)
        total = torch.zeros((), device=self.options.device)
        for batch in some:
            tensors = [torch.from_numpy(a) for a in (batch.ids, batch.chosen, batch.targets)]
            ids, chosen, targets = (t.to(self.options.device) for t in tensors)
            torch._dynamo.maybe_mark_dynamic(ids, [0, 1])
            torch._dynamo.maybe_mark_dynamic(chosen, 0)
            torch._dynamo.maybe_mark_dynamic(targets, 0)
            loss = self.loss(ids, chosen, targets) / n_chosen
            loss.backward()
            total += loss.detach()
        return float(total)

    def step(self, some: list[Batch]) -> float:
        """Makes one update from some batches; returns the mean loss."""
        share, started = self.progress.share(self.options), time.monotonic()
        rate = learning_rate(share)
        mean = self._backward(some)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = self.peaks[name] * rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        old = self.progress
        self.progress = replace(
            old,
            step=old.step + 1,
            tokens=old.tokens + sum(batch.n_tokens for batch in some),
            seconds=old.seconds + min(MAX_STEP_S, time.monotonic() - started),
            window=some[-1].window,
            loss=mean if old.step == 0 else 0.98 * old.loss + 0.02 * mean,
        )
        return mean

    # -- files --

    def save(self) -> None:
        """Writes the checkpoint to a new folder, which replaces the old one; exports the model."""
        folder = self.options.folder / "checkpoint"
        new = folder.with_name("checkpoint.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        tensors = {f"model/{n}": p.detach() for n, p in self.model.named_parameters()}
        names = {p: n for n, p in self.model.named_parameters()}
        for kind, optimizer in self.optimizers.items():
            for p, state in optimizer.state.items():
                for key, value in state.items():
                    tensors[f"{kind}/{names[p]}/{key}"] = torch.as_tensor(value)
        save_file({n: t.contiguous() for n, t in tensors.items()}, new / "state.safetensors")
        (new / "progress.json").write_text(json.dumps(asdict(self.progress)) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
        self.export()

    def load(self) -> bool:
        """Loads the checkpoint; returns whether there is one."""
        folder = self.options.folder / "checkpoint"
        if not (folder / "progress.json").is_file():
            return False
        tensors = load_file(folder / "state.safetensors", device=self.options.device)
        named = dict(self.model.named_parameters())
        for path, tensor in tensors.items():
            kind, name, *key = path.split("/")
            if kind == "model":
                named[name].data.copy_(tensor)
            else:
                is_step = key[0] == "step"
                self.optimizers[kind].state[named[name]][key[0]] = (
                    tensor.cpu() if is_step else tensor
                )
        self.progress = Progress(**json.loads((folder / "progress.json").read_text()))
        return True

    def begin_with(self, folder: Path) -> None:
        """Takes a model's weights, and the texts of the last stage."""
        weights = load_file(folder / "model.safetensors", device=self.options.device)
        named = dict(self.model.named_parameters())
        if {n: p.shape for n, p in named.items()} != {n: t.shape for n, t in weights.items()}:
            raise SystemExit(f"{folder}: its weights have other names or shapes than this model")
        for name, tensor in weights.items():
            named[name].data.copy_(tensor)
        self.progress = replace(self.progress, window=STAGES[-1] // WINDOW)

    def export(self) -> None:
        """Writes the model as a Hugging Face folder, in bfloat16."""
        folder = self.options.folder / "model"
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: p.detach().to("cpu", torch.bfloat16).contiguous()
            for name, p in self.model.named_parameters()
        }
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.dumps(self.shape.config(self.ends), indent=2)
        (folder / "config.json").write_text(config + "\n")


def learning_rate(share: float) -> float:
    """The learning rate as a share of its peak, at a share of the training."""
    warm = min(1.0, (share + 1e-4) / WARM_UP)
    return warm * (LAST_LR + (1 - LAST_LR) * (1 + math.cos(math.pi * share)) / 2)


def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


ELSEWHERE = "give --from another --folder"


def _is_same(folder: Path, start: Path) -> bool:
    return tokenizer_of(folder).to_str() == tokenizer_of(start).to_str()


def train(options: Options) -> None:
    torch.set_num_threads(options.threads)
    folder = options.folder / "model"
    if not (folder / "tokenizer.json").is_file():
        made = tokenizers.train() if options.start is None else tokenizer_of(options.start)
        tokenizers.write(folder, made)
    elif options.start is not None and not _is_same(folder, options.start):
        raise SystemExit(f"{folder}: its tokenizer is not that of {options.start}; {ELSEWHERE}")
    trainer = Trainer(options, tokenizer_of(folder))
    n_parameters = sum(p.numel() for p in trainer.model.parameters())
    state = "goes on" if trainer.load() else "begins"
    if options.start is not None:
        if state == "begins":
            trainer.begin_with(options.start)
        elif trainer.progress.window < STAGES[-1] // WINDOW:
            raise SystemExit(
                f"{options.folder}: a training from the beginning goes on here; {ELSEWHERE}"
            )
    print(
        f"{n_parameters / 1e6:.2f} M parameters; training {state}; "
        f"compiled in {trainer.compile():.0f} s",
        flush=True,
    )
    stream = batches(
        folder, options.seed, trainer.progress.window, options.batch_tokens, options.workers
    )
    shown, saved = time.monotonic(), time.monotonic()
    tokens = trainer.progress.tokens
    while trainer.progress.share(options) < 1.0:
        trainer.step(list(islice(stream, options.batches_a_step)))
        now = time.monotonic()
        if now - shown > PROGRESS_S:
            p = trainer.progress
            print(
                f"{100 * p.share(options):5.1f}%  step {p.step}  {p.tokens / 1e6:.2f} M tokens"
                f"  {(p.tokens - tokens) / (now - shown):,.0f} tokens/s  loss {p.loss:.4f}",
                flush=True,
            )
            shown, tokens = now, p.tokens
        if now - saved > CHECKPOINT_S:
            trainer.save()
            saved = now
    trainer.save()
    print(f"done: {trainer.progress}; the model is in {folder}", flush=True)
