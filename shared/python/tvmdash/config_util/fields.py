"""What a config field is, and the fields that the dashboard knows: the home's, a job's, the timing of a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash import common

REQUIRED, SAME = object(), object()
AXIS_COLUMNS = ("workload_args", "engine_config", "build_config", "runtime_config")
"""The columns of a record that can hold an axis's value."""
WORKLOAD, ENGINE = "workload", "engine"
"""What else an experiment can vary: `workload.DOMAIN` and the engine."""
NIGHTLY, SMOKE = SIZES = ("nightly", "smoke")
"""How big an experiment is: its config's `size`."""
JSON_TYPES = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "list": "array",
    "map": "object",
}


@dataclass(frozen=True)
class Field:
    """One config field; `default` is REQUIRED where the field must be given, `smoke` SAME where sizes do not differ.

    `axis` names the record column that the experiment's points vary by this field's values, `COLUMN` or `COLUMN.NAME`.
    """

    type: str
    doc: str
    default: common.Json = REQUIRED
    min: float | None = None
    max: float | None = None
    choices: tuple[common.Json, ...] = ()
    of: Field | None = None
    nullable: bool = False
    smoke: common.Json = SAME
    axis: str = ""

    def default_of(self, size: str) -> common.Json:
        """The default at this size; REQUIRED where there is none."""
        return self.default if self.smoke is SAME or size != SMOKE else self.smoke

    def schema(self) -> dict[str, Any]:
        """The field as JSON Schema."""
        schema: dict[str, Any] = {"description": self.doc}
        if self.type == "choice":
            schema["enum"] = list(self.choices)
        elif self.type != "any":
            name = JSON_TYPES[self.type]
            schema["type"] = [name, "null"] if self.nullable else name
        if self.type == "str" and self.min:
            schema["minLength"] = self.min
        elif self.type in {"int", "float"}:
            schema.update(
                {key: value for key, value in (("minimum", self.min), ("maximum", self.max)) if value is not None}
            )
        elif self.type == "list":
            schema["items"] = self.of.schema() if self.of else {}
            schema["minItems"] = self.min or 0
        elif self.type == "map":
            schema["additionalProperties"] = self.of.schema() if self.of else {}
        if self.default is not REQUIRED:
            schema["default"] = self.default
        return schema


Fields = Mapping[str, Field]

_NAMES = Field("str", "A Slack ID such as U012ABCDEF.", min=1)
_TIMEOUTS = Field("int", "Seconds.", min=1)
_VARIABLES = Field("str", "The variable's value.")
_FOLDERS = Field("str", "A folder.", min=1)

JOB_FIELDS: Fields = {
    "active": Field("bool", "Whether this job takes part in the nights."),
    "title": Field("str", "Its name for people; by default the folder's.", default=""),
    "description": Field("str", "What it answers, in a sentence or two.", default=""),
    "notify": Field("list", "Slack IDs that are pinged when it fails.", default=[], of=_NAMES),
    "priority": Field("int", "Higher runs earlier.", default=0),
    "timeouts": Field("map", 'Seconds allowed by stage, as in {"run": 600}.', default={}, of=_TIMEOUTS),
    "env": Field("map", "Environment variables added for its stages.", default={}, of=_VARIABLES),
}
OF_A_SIZE: dict[str, Field] = {
    NIGHTLY: Field("map", "Fields that count only where `size` is nightly.", default={}, of=Field("any", "")),
    SMOKE: Field("map", "Fields that count only where `size` is smoke.", default={}, of=Field("any", "")),
}
"""What a config says for one size; it stands in the place of those fields."""
EXPERIMENT_FIELDS: Fields = {
    **JOB_FIELDS,
    "tvm_remote": Field("str", "Where its TVM comes from; by default the home's.", default=None, nullable=True),
    "tvm_branch": Field(
        "str",
        "Which TVM: `latest`, a version, a branch, tag or commit; by default the home's.",
        default=None,
        nullable=True,
    ),
    "tvm_options": Field(
        "map",
        "CMake's options of a source build, as `USE_LLVM`; by default the home's.",
        default=None,
        of=Field("str", "Value."),
        nullable=True,
    ),
    "tvms": Field(
        "list",
        "Which of the home's `tvms` it is measured on as well; by default all, or none where it has a `tvm_remote` or"
        " `tvm_branch` of its own.",
        default=None,
        of=Field("str", "A name in the home's `tvms`.", min=1),
        nullable=True,
    ),
    "hosts": Field(
        "list",
        "Which hosts measure it, by their names or tags in the home's `hosts`; by default the home's own machine.",
        default=None,
        of=Field("str", "A name or a tag in the home's `hosts`; `local` is the home's own machine.", min=1),
        nullable=True,
    ),
    "size": Field(
        "choice",
        "Which defaults count: those of a night, or small ones that show in seconds whether all works.",
        default=NIGHTLY,
        choices=SIZES,
    ),
    **OF_A_SIZE,
    "rerun_setup": Field("bool", "Run setup.sh every night, changed or not.", default=False),
}
SUBSYSTEM_FIELDS: Fields = JOB_FIELDS
HOME_FIELDS: Fields = {
    "tmp_data_dir": Field("str", "Working folder of the night; raw measurements are kept there.", min=1),
    "backup_dir": Field("str", "Folder of the archives.", min=1),
    "setup_dir": Field("str", "Folder for what setup stages leave.", min=1),
    "artifact_dir": Field("str", "Folder of the TVM artifacts.", default="artifacts", min=1),
    "experiment_dirs": Field(
        "list",
        "Folders of experiments of your own, searched in this order before those of the repository.",
        default=[],
        of=_FOLDERS,
    ),
    "subsystem_dirs": Field(
        "list", "Folders of subsystems of your own, searched in the same way.", default=[], of=_FOLDERS
    ),
    "tvm_remote": Field("str", "Where TVM comes from: `pypi`, or a git remote to build from.", default="pypi", min=1),
    "tvm_branch": Field(
        "str",
        "Which TVM: `latest` or a version of `pypi`; a branch, tag, commit or `pull/NUMBER` of a git remote.",
        default="latest",
        min=1,
    ),
    "tvm_options": Field(
        "map", "CMake's options of a source build, as `USE_LLVM`.", default={}, of=Field("str", "Value.")
    ),
    "tvms": Field(
        "map",
        "TVMs that are measured each night beside `tvm_branch`, by a name of yours:"
        ' `{"release": "pypi:0.26.0", "ours": "https://host/tvm@main"}`.',
        default={},
        of=Field("str", "`pypi:VERSION`, `git:REVISION` or `REMOTE@REVISION`.", min=1),
    ),
    "reference": Field(
        "str",
        "The TVM that tonight's is measured against: `auto` (of wheels the release before, of source builds the build"
        " before), `none`, a TVM as in `tvms`, or a name in `tvms`.",
        default="auto",
        min=1,
    ),
    "hosts": Field(
        "map",
        "The machines that measure, by a name of yours (docs/how-to/hosts.md); an experiment names those it uses.",
        default={},
        of=Field("map", "A host.", of=Field("any", "")),
    ),
    "devices": Field(
        "map",
        "What TVM drives beside the processor (docs/how-to/devices.md): `opencl`, `cuda`, `rocm`, `metal`, `vulkan`,"
        " each also with a number as in `cuda:1`, and `remote:NAME`; an experiment's `device` names those it runs on.",
        default={},
        of=Field("map", "A device.", of=Field("any", "")),
    ),
    "tvm_source": Field(
        "str",
        "The git remote that has the source of TVM's releases: the runtime of a device that a wheel lacks is built"
        " from it.",
        default="https://github.com/apache/tvm",
        min=1,
    ),
    "randomize": Field(
        "bool", "Run experiments in random order (the seed is recorded), else by priority, name.", default=True
    ),
    "seed": Field("int", "Seed of the order; by default a new one each night.", default=None, nullable=True, min=0),
    "timeouts": Field("map", "Seconds allowed by stage; a job's own come first.", default={}, of=_TIMEOUTS),
    "artifact_timeout_s": Field(
        "int",
        "Seconds allowed for getting one TVM; null: 3600 for a wheel, 21600 (6 hours) for a build from source.",
        default=None,
        nullable=True,
        min=1,
    ),
    "max_artifacts_gb": Field(
        "float", "Size limit of all artifacts; the ones used longest ago go first.", default=20.0, min=0
    ),
    "parallel_stages": Field("int", "Stages after `run` that may run at once; 0 = as many as cores.", default=0, min=0),
    "min_free_mb": Field("int", "A night starts only with this much free disk space.", default=500, min=0),
    "backup_copy": Field(
        "str",
        "Object storage that holds a copy of `backup_dir`, as `s3://BUCKET/FOLDER` (docs/how-to/back-up.md).",
        default="",
        min=0,
    ),
    "keep_archives": Field("int", "How many archives are kept (two a night).", default=60, min=2),
    "keep_raw_nights": Field("int", "How many nights' raw measurements are kept.", default=30, min=0),
    "env": Field("map", "Environment variables added for every stage.", default={}, of=_VARIABLES),
    "telemetry_rate": Field(
        "float",
        "Readings a second of temperatures, clocks, load, memory during each run; 0 = none.",
        1.0,
        min=0,
        max=10,
    ),
    "env_name": Field(
        "str",
        "Name of this machine in records; by default the host's at the first night (results/machine.json).",
        default="",
        min=0,
    ),
    "heartbeat_url": Field(
        "str",
        "A dead man's switch (healthchecks.io, Cronitor, ...): fetched with `/start` when a night begins, as it is when"
        " all went well, else with `/fail` and what failed (docs/how-to/nightly.md).",
        default="",
        min=0,
    ),
    "heartbeat_style": Field(
        "choice",
        "How its addresses are made: `auto` knows Cronitor by its host.",
        default="auto",
        choices=("auto", "healthchecks", "cronitor"),
    ),
    "schedule": Field(
        "str",
        "When nights should begin, as cron has it (`0 3 * * *`, local time), for `watch`; by default as the crontab or"
        " a timer of systemd says.",
        default="",
        min=0,
    ),
    "watch_grace_minutes": Field(
        "int",
        "How long after that `watch` waits for the night to be complete; by default as nights of this home need.",
        default=None,
        nullable=True,
        min=1,
    ),
    "prometheus_file": Field(
        "str", "Where each night leaves its figures for node_exporter's textfile collector (*.prom).", default="", min=0
    ),
    "website_url": Field("str", "Where the website is served, for links in messages.", default="", min=0),
    "routes": Field(
        "map",
        "Where incidents and nights are told, by a name of yours (docs/how-to/routes.md).",
        default={},
        of=Field("map", "A route.", of=Field("any", "")),
    ),
    "owners": Field(
        "list",
        "Who looks after which series; a regression pings them once (docs/how-to/routes.md).",
        default=[],
        of=Field("map", "Owners.", of=Field("any", "")),
    ),
    "bisect_when_idle": Field(
        "bool",
        "Whether `tries HOME work` bisects what a `try` found slower between two builds of source.",
        default=False,
    ),
    "isolate_candidates": Field(
        "choice",
        "Whether what `try` measures of others (pull requests, forks) is built and run by bubblewrap, without network"
        " and with nothing of this machine but what it needs: `auto` where that can be, `require`, `never`.",
        default="auto",
        choices=("auto", "require", "never"),
    ),
    "candidates_may_read": Field(
        "list",
        "Folders that it may read there beside the system's, as `/opt/rocm`.",
        default=[],
        of=_FOLDERS,
    ),
    "github_may_ask": Field(
        "list",
        "Who may ask for a `try` in a pull request on GitHub.",
        default=[],
        of=Field("str", "A login of GitHub.", min=1),
    ),
    "github_token_file": Field(
        "str",
        "File of the token that answers there (mode 600, outside the home); GITHUB_TOKEN comes first.",
        default="~/.config/tvmdash/github_token",
        min=1,
    ),
    "github_login": Field(
        "str",
        "The account that answers; by default GitHub is asked. For a workflow's own token: `github-actions[bot]`.",
        default="",
        min=0,
    ),
}
HOST_FIELDS: Fields = {
    "launcher": Field(
        "choice",
        "How the dashboard works there: `ssh`, `slurm` (by srun), or `local`, which gives the home's own machine tags.",
        choices=("local", "ssh", "slurm"),
    ),
    "address": Field("str", "`ssh`: the destination that the command ssh is given.", default="", min=0),
    "folder": Field(
        "str",
        "`ssh`, `slurm`: the dashboard's own folder there, absolute; it is made. Code, TVM and raw data lie in it.",
        default="",
        min=0,
    ),
    "tags": Field("list", "Names for several hosts together.", default=[], of=Field("str", "A tag.", min=1)),
    "node": Field(
        "str",
        "`slurm`: the node (srun --nodelist). The machine is locked under this name while it measures; by default under"
        " its host name.",
        default="",
        min=0,
    ),
    "partition": Field("str", "`slurm`: srun --partition.", default="", min=0),
    "constraint": Field("str", "`slurm`: srun --constraint.", default="", min=0),
    "account": Field("str", "`slurm`: srun --account.", default="", min=0),
    "time_limit_minutes": Field(
        "int", "Minutes allowed to all that it measures in a night (`slurm`: srun --time).", default=480, min=1
    ),
    "patience_minutes": Field(
        "int", "Minutes to wait until the host, or Slurm's queue, lets the night begin there.", default=60, min=1
    ),
}
"""What the config says of one host."""
DEVICE_FIELDS: Fields = {
    "target": Field(
        "map",
        'TVM\'s target for it: fields that are added to its kind\'s own, as `{"arch": "sm_90"}`. Of a remote processor,'
        " the whole target.",
        default={},
        of=Field("any", ""),
    ),
    "tracker_host": Field("str", "`remote:NAME`: where TVM's RPC tracker runs.", default="", min=0),
    "tracker_port": Field("int", "`remote:NAME`: where it listens.", default=9190, min=1, max=65535),
    "key": Field("str", "`remote:NAME`: what the tracker calls it; by default NAME.", default="", min=0),
    "kind": Field(
        "choice",
        "`remote:NAME`: what TVM drives there.",
        default="cpu",
        choices=("cpu", "opencl", "cuda", "rocm", "metal", "vulkan"),
    ),
    "cc": Field(
        "str", "`remote:NAME`: the compiler that links for it; without one, the device links.", default="", min=0
    ),
}
"""What the config says of one device."""
_LEVEL = Field("str", "A level of docs/explanation/verdict.md.", min=1)
ROUTE_FIELDS: Fields = {
    "kind": Field(
        "choice",
        "What it is: `email` (SMTP), `webhook`, `github` (an issue for each incident), `slack` (threads), `apprise`"
        " (any service that Apprise knows).",
        choices=("email", "webhook", "github", "slack", "apprise"),
    ),
    "at_once": Field(
        "list",
        "Levels of incidents that have a message each: `regression`, `changed` (a move of the machine as well),"
        " `improved`.",
        default=["regression"],
        of=_LEVEL,
    ),
    "digest": Field(
        "list",
        "Levels that are told together, in at most one message a night: of incidents, and of the night's verdict.",
        default=[],
        of=_LEVEL,
    ),
    "quiet_hours": Field(
        "str",
        "As `22:00-07:00`: nothing is sent between. What waits is sent by `dashboard routes HOME --send`, or the next"
        " night.",
        default="",
        min=0,
    ),
    "time_zone": Field("str", "Of the quiet hours, as `Europe/Berlin`.", default="UTC", min=1),
    "wake": Field("list", "Levels that are sent in quiet hours too.", default=[], of=_LEVEL),
    "seconds": Field("float", "The most time that the route may cost a night.", default=60.0, min=1, max=1200),
    "secret_file": Field(
        "str",
        "File with mode 600, outside the home: the password (`email`), the key and, if that is secret, the address"
        " (`webhook`), the token (`github`, `slack`; by default github_token or slack_token in ~/.config/tvmdash), the"
        " address (`apprise`).",
        default="",
        min=0,
    ),
    "server": Field("str", "`email`: HOST or HOST:PORT of the mail server.", default="", min=0),
    "security": Field(
        "choice",
        "`email`: how the connection is made safe; `none` only on this machine.",
        default="starttls",
        choices=("starttls", "tls", "none"),
    ),
    "user": Field("str", "`email`: the name to log in with; empty: no login.", default="", min=0),
    "from": Field("str", "`email`: the sender's address.", default="", min=0),
    "to": Field(
        "list",
        "`email`: addresses that get every message; owners get the one that pings them.",
        default=[],
        of=Field("str", "An address.", min=1),
    ),
    "url": Field("str", "`webhook`: the https:// address, where that is no secret.", default="", min=0),
    "repository": Field("str", "`github`: OWNER/NAME.", default="", min=0),
    "labels": Field("list", "`github`: labels of the issues.", default=[], of=Field("str", "A label.", min=1)),
    "channel": Field("str", "`slack`: ID of the channel (C...).", default="", min=0),
}
"""What the config says of one route."""
_GLOB = "with * and ?"
OWNER_FIELDS: Fields = {
    "series": Field("str", f"Their series, by name or ID, {_GLOB}.", default="*", min=1),
    "experiment": Field("str", f"The experiments, {_GLOB}.", default="*", min=1),
    "host": Field("str", f"The hosts, {_GLOB}; `local` is the home's own machine.", default="*", min=1),
    "name": Field("str", "What messages call them, as `CNN team`.", default="", min=0),
    "slack": Field("list", "Slack IDs to ping.", default=[], of=_NAMES),
    "email": Field("list", "Addresses that get the message.", default=[], of=Field("str", "An address.", min=1)),
    "github": Field("list", "Logins to mention.", default=[], of=Field("str", "A login.", min=1)),
    "routes": Field(
        "list",
        "Routes for what is theirs. A route that no owner names tells everything.",
        default=[],
        of=Field("str", "A name in the home's `routes`.", min=1),
    ),
}
"""What the config says of one owner."""
FIELD_SETS: Mapping[str, Fields] = {
    "timing": {
        "number": Field("int", "Calls in one sample; 0 = as many as fill `min_repeat_ms`.", default=0, min=0),
        "repeat": Field(
            "int",
            "Samples of a point in a process; after three processes as many as the earlier ones' spread asks for, up to"
            " 4 times this.",
            default=10,
            min=1,
            smoke=3,
        ),
        "min_repeat_ms": Field(
            "float", "Least length of a sample in ms, where `number` is 0.", default=20.0, min=0, smoke=1.0
        ),
        "warmup": Field("int", "Samples taken first and not kept.", default=1, min=1),
        "max_seconds": Field(
            "float",
            "Fewer samples in a process, but at least 3, where they would take longer than this.",
            default=5.0,
            min=0,
            smoke=0.1,
        ),
        "processes": Field("int", "Processes that measure each point, at least.", default=3, min=1, smoke=1),
        "max_processes": Field(
            "int", "Processes that measure a point whose interval stays wide, at most.", default=6, min=1, smoke=1
        ),
        "paired": Field(
            "bool",
            "Measure each point in turn with the night's reference (the home's `reference`), where there is one.",
            default=True,
        ),
        "interval_percent": Field(
            "float",
            "A point is known well enough once half the 95 % interval of its median is at most this share of it.",
            default=5.0,
            min=0,
        ),
        "pairs": Field(
            "int",
            "Pairs of processes, tonight's TVM and the reference, that measure a point in turn, at least; they take the"
            " place of `processes`.",
            default=5,
            min=1,
            smoke=2,
        ),
        "max_pairs": Field(
            "int", "Such pairs of a point whose ratio stays uncertain, at most.", default=8, min=1, smoke=2
        ),
        "pair_percent": Field(
            "float",
            "A ratio to the reference is known well enough once half its 95 % interval is at most this share.",
            default=1.0,
            min=0,
        ),
        "max_minutes": Field(
            "float",
            "No process beyond each group's first begins where the run would then be older than this.",
            default=30.0,
            min=0,
        ),
        "process_minutes": Field(
            "float",
            "A measuring process that runs longer is ended; the point that it was in fails.",
            default=20.0,
            min=0,
        ),
        "threads": Field("int", "Threads of the measured runtime.", default=1, min=1, axis="runtime_config"),
        "data_seed": Field("int", "Seed of weights and inputs.", default=0, min=0),
    },
    "target": {
        "mcpu": Field(
            "str",
            "LLVM's name of the processor; empty: x86-64-v3 where the machine has it, else x86-64.",
            default="",
        ),
    },
    "operators": {
        "per_operator": Field(
            "bool",
            "Each operator of TVM's networks is a record and series of its own, of ten watched runs in every process.",
            default=False,
        ),
    },
    "device": {
        "device": Field(
            "list",
            "On what TVM's points run: `cpu`, and devices in the home's `devices` (docs/how-to/devices.md).",
            default=["cpu"],
            of=Field("str", "A device.", min=1),
            min=1,
        ),
    },
}
