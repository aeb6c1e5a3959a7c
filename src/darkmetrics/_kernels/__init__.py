"""Formulas on arrays: numpy and scipy only, arrays in, arrays out.

Import rule: a kernel imports nothing of darkmetrics outside this folder and checks nothing; input is
validated once, in `evaluation_set` and `frames`. Names follow `docs/explanation/mathematics.md`.
"""
