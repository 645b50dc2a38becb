"""Sharding over meshes: propagation, partition, shards of arguments."""
