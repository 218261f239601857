"""What the source of a module says of its dicts and deques."""
