"""What every layer uses: diagnostics, messages, the cache folder, the version."""
