"""Programs of TT-Lang: running them, and projects of the operations that they compile."""
