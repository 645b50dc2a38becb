"""What a program takes of a machine: bytes, operations, and the shortest time for them."""
