"""What converted code calls where a program's data are live objects."""
