"""Element types, constants and attribute syntax that all dialects use."""
