"""Op definitions: attribute kinds, functions, verification."""
