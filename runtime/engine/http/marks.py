"""Marks of a program's call, for who may send it to several servers: headers over HTTP, metadata
over gRPC."""

BEGUN = "sgc-begun"  # of an error: "no" if the run has not begun
EFFECTS = "sgc-effects"  # of a call, over gRPC: "refuse" not to run a program that has effects
