"""PyTorch to TTIR: graphs of `torch.export`, operation by operation, without decompositions.

An exported graph says what the model meant: `linear`, `layer_norm`, `scaled_dot_product_attention`
are one operation each, as they are in TTIR. Through StableHLO each would be taken apart and have to
be found again.
"""
