"""Code movement: moves constant text in front of the arguments if the meaning stays the same.

It changes prompts. `prompts.py` finds them, `pieces.py` cuts them, `rule.py` proposes an order,
`check.py` accepts it if it only reorders, `rebuild.py` writes the new prompt, and `move.py` runs
all of these.
"""
