"""Parts of all device programs: circular buffers, work split, reader and compute kernels."""
