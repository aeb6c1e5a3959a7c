"""Is P(fell) right? Two months with and without a drop of three points, labels missing in several ways."""
