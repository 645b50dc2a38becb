"""The Python of kernels: evaluation, captured variables, control flow, numbers."""
