"""The conversions: from any object to an array, a tensor, Python numbers or a DLPack capsule."""
