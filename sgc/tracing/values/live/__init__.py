"""Programs whose data are live objects: what a run makes stays an object of the run, which all that
have it see change."""
