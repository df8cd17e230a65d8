"""The engine of sandboxes: a profile becomes a plan for a contained process. (The profiles themselves are data, in `sandboxes/`.)

It turns one `LaunchPlan` into another and knows nothing of who runs it. What was asked for and cannot be had is refused before
anything runs.
"""

from toolrunner.sandbox.profile import Profile, TransactionRules, load_profile
from toolrunner.sandbox.sandbox import Enclosed, Sandbox, enclosed
from toolrunner.sandbox.words import BackendName, Guarantee

__all__ = ["BackendName", "Enclosed", "Guarantee", "Profile", "Sandbox", "TransactionRules", "enclosed", "load_profile"]
