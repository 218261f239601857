"""The operators for what becomes code of the graph, or runs in Python."""
