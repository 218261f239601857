"""Bounds on programs, shared by the parser, the verifier and the file form.

They are far above what programs need and keep a hostile file from costing much.
"""

# Lists of literals and of types nest no deeper.
MAX_DEPTH = 32
# A file's header and payload together.
MAX_FILE_BYTES = 16 * 2**20
# Entries of one table of a file.
MAX_ENTRIES = 2_000_000
# Of one program: what runs after what is kept as a bit for each two of them.
MAX_BLOCKS = 20_000
# Characters of a file's strings, counted wherever they are used: a file holds each once, and what
# prints or runs a program meets it everywhere. Beside these, as many as some times its bytes.
MAX_SHARED_CHARS = 4 * 2**20
MAX_CHARS_PER_BYTE = 4
# Programs that others call for each item of a list, how deep such calls nest, and how many of one
# list run at a time.
MAX_CALLED = 256
MAX_NESTING = 8
MAX_WIDTH = 1024
# Lines of a receipt, and their characters.
MAX_DETAILS = 64
MAX_DETAIL_CHARS = 400
MIN_INT, MAX_INT = -(2**63), 2**63 - 1


def max_chars(n_bytes: int) -> int:
    """How many characters a program of so many bytes may stand for."""
    return MAX_SHARED_CHARS + MAX_CHARS_PER_BYTE * n_bytes
