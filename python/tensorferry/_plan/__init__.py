"""What a conversion will do, told before it does it."""
