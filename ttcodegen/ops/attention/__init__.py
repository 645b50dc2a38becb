"""Attention, its key and value caches, rotary embedding, and sampling.

- `heads`: Split and concatenation of attention heads, and rotary position embedding (RoPE)
- `kv_cache`: Contiguous KV caches, written in place
- `paged_cache`: Paged KV caches, written in place
- `primitives`: Primitives of decode and chunked attention in device programs, and its core
  assignment
- `reference`: Reference semantics of attention, exact or in device arithmetic
- `sampling`: Sampling of the next token
- `sdpa`: Scaled dot product attention of sequences, and parts shared with its decode forms
- `sdpa_decode`: Decode attention: one query per user over contiguous or paged KV caches
- `sdpa_paged`: Chunked prefill over paged caches, and multi-head latent attention (MLA)
"""
