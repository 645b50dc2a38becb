"""What a program takes of a machine: bytes, operations, and the least time for them."""
