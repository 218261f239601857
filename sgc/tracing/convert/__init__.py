"""Converts the functions that are traced, so that what Python lets no value overload is seen."""
