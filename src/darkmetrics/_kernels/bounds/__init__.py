"""Proven bounds on how far one law can be from another."""
