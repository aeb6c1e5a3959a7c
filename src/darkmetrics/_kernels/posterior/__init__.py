"""From a likelihood to weighted nodes: modes, curvatures and fair draws."""
