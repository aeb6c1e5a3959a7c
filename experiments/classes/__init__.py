"""Coverage of 90% intervals with several classes: three real models, two real sets, and a simulated one."""
