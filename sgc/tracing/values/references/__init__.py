"""Objects of which it is known only at run time which they are."""
