"""Leave-one-out prediction of every row from the others: pairwise, or by Fourier sums."""
