"""A simulated fleet of engines."""
