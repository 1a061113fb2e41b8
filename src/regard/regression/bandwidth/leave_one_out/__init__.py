"""Leave-one-out prediction of every row from the others: pairwise, by Fourier sums, and within a radius."""
