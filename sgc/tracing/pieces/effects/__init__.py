"""What code does to its arguments, by its syntax."""
