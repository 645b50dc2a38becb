"""Device programs that make several passes over rows of tiles: softmax and norms."""
