"""Code movement: moves constant text in front of the arguments if its meaning stays the same.

`prompts.py` finds the prompts, `pieces.py` cuts them, `rule.py` proposes an order of the pieces,
and `move.py` checks the order and rewrites the program.
"""
