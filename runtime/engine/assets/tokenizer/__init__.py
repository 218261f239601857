"""The small tokenizer of the default and the fake model, made by `tools/make_tokenizer.py`."""
