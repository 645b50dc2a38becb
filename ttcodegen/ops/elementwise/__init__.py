"""Elementwise ops.

- `activations`: Activation functions with parameters, and activations fused into calls
- `binary`: Elementwise ops of two tensors, or of a tensor and a scalar
- `quantization`: Quantize, dequantize and requantize ops
- `registration`: Registration of elementwise ops, tile lowerings of binary ones, and exact integer
  division
- `ternary`: Selection and clamping
- `unary`: Elementwise ops of one tensor
"""
