"""Modules at the import paths of ttrt, so that its scripts only change the package name."""
