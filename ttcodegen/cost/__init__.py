"""Resource use of a program: bytes, operations, and its roofline."""
