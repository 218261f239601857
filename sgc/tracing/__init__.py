"""Tracing: running a program with abstract arguments to get its graph."""
