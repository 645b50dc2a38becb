"""Collectives of meshes.

- `collectives`: Collectives and point-to-point transfers; types are those of one device
- `device_calls`: Emission of ttnn collectives
- `mesh_sharding`: Mesh sharding: distribution and aggregation of tensors, and implied meshes
- `reference`: Semantics of collectives: participants, shapes, and reference results in numpy
- `schedule`: Collective schedule: steps along mesh axes, over shards of whole tensors
- `ttnn_calls`: ttnn definitions of collectives, and distributed norms
"""
