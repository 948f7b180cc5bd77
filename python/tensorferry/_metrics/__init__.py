"""Metrics of each training step, from host and devices to where they are kept, without a wait."""
