"""Bounds on programs, shared by the parser, the verifier and the file form.

The bounds are far above what programs need; they limit the cost of a hostile file.
"""

# The nesting depth of lists of literals, and of list types.
MAX_DEPTH = 32
# A file's header and payload together.
MAX_FILE_BYTES = 16 * 2**20
# Entries of one table of a file.
MAX_ENTRIES = 2_000_000
# Blocks of one program; the reachability of blocks takes a bit for each pair.
MAX_BLOCKS = 20_000
# A file may expand to so many characters, plus so many per byte of the file. Strings count once for
# each use, as in a printed program, although the file holds each string only once.
MAX_SHARED_CHARS = 4 * 2**20
MAX_CHARS_PER_BYTE = 4
# The called programs of maps, how deep their calls nest, and how many calls of a map run at a time.
MAX_CALLED = 256
MAX_NESTING = 8
MAX_WIDTH = 1024
# The children of one fork.
MAX_CHILDREN = 100_000
# Lines of a receipt, and characters of each.
MAX_DETAILS = 64
MAX_DETAIL_CHARS = 400
MIN_INT, MAX_INT = -(2**63), 2**63 - 1


def max_chars(n_bytes: int) -> int:
    """The most characters that a program of so many bytes may expand to."""
    return MAX_SHARED_CHARS + MAX_CHARS_PER_BYTE * n_bytes
