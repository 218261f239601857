"""The evaluator of a graph's code."""

from sgc.runtime.executor.code.run import run_code

__all__ = ["run_code"]
