"""Device programs of elementwise ops and reductions, tile by tile."""
