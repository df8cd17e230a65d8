"""Tools: functions with everything the runner must know of them, told once, when they are defined."""
