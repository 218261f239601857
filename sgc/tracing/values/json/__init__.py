"""Values out of JSON, of types known only at run time or by a schema, and those of any type."""
