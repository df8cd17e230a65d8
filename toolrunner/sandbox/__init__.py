"""The engine of sandboxes: a profile becomes a plan for a contained process. (The profiles themselves are data, in `sandboxes/`.)

It turns one `LaunchPlan` into another and knows nothing of who runs it. What was asked for and cannot be had is refused before
anything runs.
"""

from toolrunner.sandbox.profile import Profile, load_profile
from toolrunner.sandbox.sandbox import Sandbox, contained
from toolrunner.sandbox.words import BackendName, Guarantee

__all__ = ["BackendName", "Guarantee", "Profile", "Sandbox", "contained", "load_profile"]
