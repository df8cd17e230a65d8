"""Measures what the design promises about speed, next to what else there is. `python -m benchmarks` lists the benchmarks.

Uses the public package only, as a stranger would. Nothing here is imported by the package or shipped in its wheel.
"""
