"""Code movement: constant text goes in front of the arguments where that asks the same.

It changes prompts. `prompts.py` finds them, `pieces.py` cuts them, `rule.py` proposes an order,
`check.py` accepts it if it only reorders, `rebuild.py` writes it down, `move.py` is all of it.
"""
