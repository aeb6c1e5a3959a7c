"""Sums of labels and functions of a few of them: their laws, at one node and at many."""
