"""ROC-AUC: its two sums, their law (a lattice, clusters of ranks, fixed labelings, an expansion), bounds on it."""
