"""Missingness mechanisms: what they assume about missing labels, declared as models of the engine in `posterior`.

Import rule: a mechanism knows evaluation sets, calibrators and the engine; it knows no metric and no method.
"""
