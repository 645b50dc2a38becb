"""The `ttmetal` dialect: buffers, device programs and their settings."""
