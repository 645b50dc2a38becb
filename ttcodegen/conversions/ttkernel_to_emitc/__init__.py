"""Lowering of kernels (TTKernel) to EmitC."""
