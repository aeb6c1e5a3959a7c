"""ROC-AUC: its two sums, the law of them (atoms, a lattice, clusters of ranks, an expansion), bounds on that law."""
