"""The text of a piece: a module of its own, with everything that the piece uses."""
