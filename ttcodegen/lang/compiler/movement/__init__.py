"""Data movement kernels of TT-Lang: copies, pipes, semaphores."""
