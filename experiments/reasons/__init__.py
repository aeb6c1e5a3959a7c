"""How often intervals hold the truth on real data, whatever the reason why labels are missing."""
