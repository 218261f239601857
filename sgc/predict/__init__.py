"""What a run will use, before it is made: dry runs, counted by models of engine and providers."""
