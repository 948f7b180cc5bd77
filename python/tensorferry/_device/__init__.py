"""Tensors on CUDA devices: described, ordered after their producer's work, and brought to host memory."""
