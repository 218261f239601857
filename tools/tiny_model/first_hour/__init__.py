"""What a first hour touches: more phrasings, summaries, sums to 100, other tools.

It is trained in the last stage (`corpus.py`), so it changes no text of the stages before.
"""
