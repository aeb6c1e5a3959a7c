"""How often intervals for the population hold its value: simulated samples, and samples of real files."""
