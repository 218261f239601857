"""Predicts what a run will use: dry runs, counted by models of the engine and of providers."""
