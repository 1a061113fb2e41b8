"""`Weights`: the n x m matrix of attention weights, computed part by part on demand and never stored."""

from regard.weights._tensor_interface import DENSE_LIMIT, Largest, Transposed
from regard.weights._weights import TopK, Weights, labels_of, matrix_of, weights_from, weights_of

__all__ = [
    "DENSE_LIMIT", "Largest", "TopK", "Transposed", "Weights", "labels_of", "matrix_of", "weights_from", "weights_of",
]  # fmt: skip
