"""Convolution, pooling and upsampling: sliding windows over images.

- `convolution`: Convolution and transposed convolution of images and sequences
- `convolution3d`: 3D convolution
- `device_windows`: Canonical convolution and pooling of device programs, and dimension numbers
- `general`: StableHLO's convolution, decomposed to conv1d, conv2d and conv3d
- `pooling`: Max and average pooling of images
- `pooling_general`: StableHLO's reduce_window pooling, decomposed to that of images
- `prepared_weights`: Weights of the library's 2D convolutions, plain or prepared on the device
- `sliding_window`: Sliding windows shared by convolution and pooling
- `ttnn_calls`: TTNN calls of convolutions and pools
- `upsample`: Nearest and bilinear upsampling of images
"""
