"""Collectives of meshes."""
