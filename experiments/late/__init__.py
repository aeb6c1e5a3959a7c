"""How often intervals hold the truth where labels come late: simulated, with real times of events, in real order."""
