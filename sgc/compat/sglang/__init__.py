"""`import sglang` as sgc: programs written for SGLang's front end run unmodified.

    import sgc.compat.sglang
    sgc.compat.sglang.install()
    import sglang as sgl  # sgc's language under SGLang's names

From a shell: `python -m sgc.compat.sglang PROG.py ARGS…`. Only the front end is here, without
servers, kernels and the rest of the package `sglang`; using those is an error that lists what is.
"""

from sgc.compat.sglang.importing import install

__all__ = ["install"]
