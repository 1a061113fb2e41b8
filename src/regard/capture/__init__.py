"""The ways in which a model can call attention, one file each."""
