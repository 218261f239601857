"""Comprehensions, generators and functions of items, rewritten as loops."""
