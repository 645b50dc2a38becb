"""What is compiled for: architectures and descriptions of systems."""
