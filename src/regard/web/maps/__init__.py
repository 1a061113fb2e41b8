"""One head's attention map as a pyramid of tiles, computed on demand."""
