"""Convolution, pooling and upsampling: sliding windows over images."""
