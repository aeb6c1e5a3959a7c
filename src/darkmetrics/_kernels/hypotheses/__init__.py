"""Tests of what the data say: mixtures, two samples, curves that fit."""
