"""Traces by the name that they have for users: `tvmtraces`, which also reads the JSON that a home keeps.

See docs/reference/traces.md. `import tvmdash.traces as rocpd` is what AMD's examples need to run.
"""

from tvmdash.traces import home_files
from tvmtraces import *  # noqa: F403
from tvmtraces import __all__  # noqa: F401
from tvmtraces.sources import add_json_kinds

add_json_kinds(home_files.find_kind)
