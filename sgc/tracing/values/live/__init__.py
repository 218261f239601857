"""Programs whose data are live objects: an object that a run makes stays one object of the run, and
all that refer to it see it change."""
