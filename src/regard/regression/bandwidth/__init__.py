"""The bandwidth that predicts each point best from the others: leave-one-out, and the search for its minimum."""
