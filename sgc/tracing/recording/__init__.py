"""The tracer's session, a class for each kind of construct; each class adds to the one before."""
