"""Iterators of loops that go on without an end, and what takes their items in step with lists."""
