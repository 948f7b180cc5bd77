"""What a tensor is, and whether two of them reach the same memory."""
