"""What code does to the values that it is given, as its syntax tells."""
