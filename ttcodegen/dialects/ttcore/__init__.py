"""The `ttcore` dialect: systems, devices, tiles, grids and layouts."""
