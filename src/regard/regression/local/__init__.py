"""Local constant and local linear fits: what is estimated at one query from the points around it."""
