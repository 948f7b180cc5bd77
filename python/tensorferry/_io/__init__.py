"""Tensors to files and back: whole or absent, in bounded memory, written from where they lie."""
