"""Sums of independent labels: label assignments, counts of positives and normal mixtures."""
