"""The language of the catalogue: definitions, traits, calls, tile lowerings, engines."""
