"""The command lines: options in, exit status out."""
