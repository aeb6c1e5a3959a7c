"""What `spark-submit` starts: it wants a file, and the experiment is a module."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    runpy.run_module("experiments.scale", run_name="__main__")
