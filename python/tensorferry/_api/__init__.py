"""The public functions: their signatures and documentation; each loads its implementation when first called."""
