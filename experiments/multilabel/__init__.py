"""Coverage of intervals for several labels per row."""
