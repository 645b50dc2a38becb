"""Foundation of every layer: diagnostics, messages, the cache folder, user files."""
