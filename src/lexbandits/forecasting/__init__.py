"""How many results a study will still need."""
