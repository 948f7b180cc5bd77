"""The cases that ``tensorferry bench`` runs, one file a concept."""
