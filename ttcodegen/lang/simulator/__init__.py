"""The simulator of TT-Lang: blocks, pipes, semaphores and scheduling on numpy."""
