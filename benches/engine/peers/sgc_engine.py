"""Driver of our own engine: `sgc serve` on a Unix socket, and a client in this process.

Token workloads go through the executor's gRPC client, with a task per chat; programs are the sgc
programs of `programs_w5.py`. Options: {"serve": ["--chunk-tokens", "512", …]}, and "is_told": false
for programs that arrive whose requests tell nothing of them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from protocol import Chats, Tally, serve

START_TIMEOUT_S = 300.0


class SgcEngine:
    packages = ("sgc", "torch", "transformers", "grpcio")

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="sgc-bench-")
        socket = Path(self._home.name) / "engine.sock"
        self.uri = f"unix:{socket}"
        command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", folder]
        command += ["--listen", self.uri, *options.get("serve", [])]
        self._is_told = options.get("is_told", True)
        self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        # The client is imported while the server starts, as `sgc.Runtime` does it.
        from sgc.runtime.executor.backends.engine.backend import EngineBackend

        self._wait(socket)
        self._loop = asyncio.new_event_loop()
        self._backend = EngineBackend(self.uri)
        self._endpoint: Any = None

    def _wait(self, socket: Path) -> None:
        """Waits until the server listens; it makes the socket when the model is loaded."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not socket.exists():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("sgc serve did not start")
            time.sleep(0.01)

    def run_chats(self, chats: Chats) -> Tally:
        return self._loop.run_until_complete(self._run_chats(chats))

    async def _run_chats(self, chats: Chats) -> Tally:
        tally = Tally()
        first = await asyncio.gather(*(self._chat(turns, tally) for turns in chats))
        tally.first_ids = list(first)
        return tally

    async def _chat(self, turns: list[dict[str, Any]], tally: Tally) -> int:
        from sgc.runtime.executor.interface.backend import Sampling, TokenRun

        history: list[int] = []
        first_id = -1
        for turn in turns:
            history += turn["ids"]
            n_out = turn["n_out"]
            sampling = Sampling(max_tokens=n_out, temperature=0.0, ignore_eos=True)
            reply = await self._backend.generate((TokenRun(tuple(history), ""),), sampling)
            assert len(reply.ids) == n_out, f"{len(reply.ids)} ids, not {n_out}"
            tally.add(len(history), n_out, reply.usage.cached_tokens)
            history += reply.ids
            first_id = reply.ids[0] if first_id < 0 else first_id
        return first_id

    def run_arrivals(self, programs: list[dict[str, Any]]) -> Tally:
        import arrivals

        from sgc.runtime.executor.hints.ahead import Told, tell
        from sgc.runtime.executor.hints.last_use import hinting
        from sgc.runtime.executor.interface.backend import Sampling, TokenRun

        tally = Tally()

        async def ask(ids: list[int], n_out: int, hint: arrivals.Hint) -> list[int]:
            n_kept = hint.n_kept if self._is_told else None
            if self._is_told:
                tell(lambda: Told(hint.program, hint.left))
            parts = (ids[:n_kept], ids[n_kept:]) if n_kept else (ids,)
            prompt = tuple(TokenRun(tuple(part), "") for part in parts if part)
            sampling = Sampling(max_tokens=n_out, temperature=0.0, ignore_eos=True)
            with nullcontext() if n_kept is None else hinting(prompt[:1] if n_kept else ()):
                reply = await self._backend.generate(prompt, sampling)
            tally.add(len(ids), n_out, reply.usage.cached_tokens)
            return list(reply.ids)

        times = self._loop.run_until_complete(arrivals.run(programs, ask))
        tally.extra = {"times_s": times}
        return tally

    def run_program(self, program: str, texts: list[str], select: str) -> Tally:
        import programs_w5
        from texts import judged

        import sgc

        if self._endpoint is None:
            self._endpoint = sgc.connect(self.uri)
        before = self._stats()
        states = programs_w5.PROGRAMS[program].run_batch(
            [{"text": text} for text in texts], backend=self._endpoint, temperature=0.0
        )
        answers = [state["answer"] for state in states]
        assert all(answers)
        after = self._stats()
        n_generated, n_prompt, n_cached, n_forced = (
            b - a for a, b in zip(before, after, strict=True)
        )
        extra = {**judged(program, answers), "n_forced": n_forced}
        return Tally(n_generated, n_prompt, n_cached, extra=extra)

    def _stats(self) -> tuple[int, int, int, int]:
        """Generated, prompt, cached and forced tokens so far."""
        stats = self._loop.run_until_complete(self._backend.stats())
        asked, forced = stats.prompt_tokens, stats.forced_tokens
        return stats.completion_tokens, asked, stats.cached_tokens, forced

    def close(self) -> None:
        self._loop.run_until_complete(self._backend.close())
        self._server.terminate()
        self._server.wait(30)
        self._home.cleanup()


if __name__ == "__main__":
    serve(SgcEngine)
