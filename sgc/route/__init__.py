"""`sgc route`: one HTTP address for several engines of one model."""
