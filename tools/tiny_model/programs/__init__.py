"""The shapes of whole programs. They include the prompts of `examples/`, and many paraphrases.

Each is `shape(r, world) -> Text`. The table of all shapes is in `corpus.py`.
"""
