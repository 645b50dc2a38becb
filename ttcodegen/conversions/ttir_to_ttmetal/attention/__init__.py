"""Device programs of attention and of key and value caches."""
