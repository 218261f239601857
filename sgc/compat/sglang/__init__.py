"""`import sglang` as sgc: programs written for SGLang's front end run unmodified.

    import sgc.compat.sglang
    sgc.compat.sglang.install()
    import sglang as sgl  # sgc's words under SGLang's names

From a shell: `python -m sgc.compat.sglang PROG.py ARGS…`. It is the front end alone; servers,
kernels and everything else of the package `sglang` are not here, and asking says what is.
"""

from sgc.compat.sglang.importing import install

__all__ = ["install"]
