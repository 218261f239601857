"""Data files shipped with the engine. It is a package only so that wheels include them."""
