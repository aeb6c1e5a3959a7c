"""Speed and memory, measured as ratios in one run on one machine. Run with `make bench`."""
