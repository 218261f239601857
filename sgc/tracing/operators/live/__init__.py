"""The operators that converted code calls in programs whose data are live objects."""
