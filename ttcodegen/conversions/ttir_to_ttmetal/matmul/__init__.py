"""Device programs of matmul over a grid of cores."""
