"""Host code of meshes: shards of arguments and results, and exchange between devices."""
