"""Scored rows made up inside an engine, as many as wanted, and their evaluation: scale measured, not claimed."""
