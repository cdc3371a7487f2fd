"""Writers of traces by the name that they have for users: see `tvmtraces.convert`."""

from tvmtraces.convert import *  # noqa: F403
from tvmtraces.convert import __all__  # noqa: F401
