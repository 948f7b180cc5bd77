"""What this machine and installation can do."""
