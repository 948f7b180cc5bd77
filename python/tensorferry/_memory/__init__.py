"""Where private copies get their memory from, and how much of it is kept."""
