"""The benchmarks are no part of the package: they are tested in a checkout, and not where only the wheel is."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]

if (CHECKOUT / "benchmarks").is_dir():
    sys.path.insert(0, str(CHECKOUT))
else:
    collect_ignore_glob = ["test_*.py"]
