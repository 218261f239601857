"""The tracer's session, a class for each kind of construct: each adds to the one before."""
