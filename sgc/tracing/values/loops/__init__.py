"""Endless iterators of loops, and iterators that take their items in step with lists."""
