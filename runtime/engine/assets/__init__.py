"""Data files shipped with the engine; a package only so that wheels carry them."""
