"""Converts traced functions so that operations which values cannot overload reach the tracer."""
