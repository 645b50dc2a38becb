"""Mixture of experts.

- `compute`: Mixture of experts: the experts' MLPs
- `dispatch`: Mixture of experts: all-to-all dispatch and combine of tokens
- `moe_gpt`: Mixture of experts: `moe_gpt`, and its prepared weights
- `routing`: Mixture of experts: placement on devices, routing, and remapping
- `selective_reduce_combine`: Mixture of experts: `selective_reduce_combine`, and the L1 shards it
  reads
"""
