"""The real library as a judge: its Python package makes the calls of a program."""
