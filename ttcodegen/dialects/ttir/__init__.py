"""Types and ops of `ttir` beside the catalogue: generics, shardings, quantized types."""
