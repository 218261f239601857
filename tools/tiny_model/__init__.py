"""`sgc-tiny`: its toy world, training texts, training, evaluation and model card."""
