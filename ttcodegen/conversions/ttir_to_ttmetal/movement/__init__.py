"""Device programs of data movement: permute, slice, concat, sort, gather, scatter."""
