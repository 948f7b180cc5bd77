"""Images as cameras and files give them to tensors as networks take them, and back."""
