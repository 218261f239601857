"""Analyses of a module's source: its dicts and deques."""
