"""`sgc-tiny`: its world, the texts it learns from, its training, evaluation and model card."""
