"""The operators for pieces of the program that become code of the graph, or run in Python."""
