from tvmdash.dashboard_info import Home as Home
from tvmdash.dashboard_info import Night as Night
from tvmdash.exp_templates import Experiment as Experiment
from tvmdash.exp_templates import Point as Point
from tvmdash.exp_templates import Prepared as Prepared
from tvmdash.records import Record as Record
from tvmdash.subsys_templates import Report as Report
from tvmdash.subsys_templates import Subsystem as Subsystem
from tvmdash.traces import connect as connect

__version__: str
