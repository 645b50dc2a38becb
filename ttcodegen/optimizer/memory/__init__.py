"""L1 that circular buffers take, by kind of op."""
