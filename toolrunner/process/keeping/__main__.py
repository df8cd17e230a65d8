"""Entry of the warden: `python -I -S -E keeping/__main__.py CONTROL_FD REQUEST_FD HOST_PID`.

-I and -S keep the host's packages and environment out. The modules are still imported by their real names, through two empty
stand-ins for their packages: `toolrunner/__init__.py` (anyio, pydantic, the lot) never runs in here.
"""

import importlib
import os
import sys
import types


def stand_in(name: str, folder: str) -> None:
    """Put an empty package of this name and folder where the import system looks first."""
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package


if __name__ == "__main__":
    # Their C halves have all that is needed here. The Python halves pull in enum, functools, collections and selectors: a fifth
    # of the heap, and what every keeper writes to after its fork is spread over that much more of it.
    sys.modules.update(signal=importlib.import_module("_signal"), socket=importlib.import_module("_socket"))
    here = os.path.dirname(os.path.abspath(__file__))
    process = os.path.dirname(here)
    stand_in("toolrunner", os.path.dirname(process))
    stand_in("toolrunner.process", process)
    importlib.import_module("toolrunner.process.keeping.warden").main(*map(int, sys.argv[1:4]))
