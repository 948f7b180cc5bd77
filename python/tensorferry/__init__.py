"""tensorferry."""
