"""Types and ops of `ttir` outside the catalogue: generics, shardings, quantized types."""
