"""Conversions that go on while the caller does something else: what it holds of one, and the thread behind it."""
