"""The type of a config field, and the dashboard's own fields: of the home, of jobs, of a point's timing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash import common

REQUIRED, SAME = object(), object()
AXIS_COLUMNS = ("workload_args", "engine_config", "build_config", "runtime_config")
"""Columns of a record that can hold an axis's value."""
WORKLOAD, ENGINE = "workload", "engine"
"""Other axes of an experiment: `workload.DOMAIN` and the engine."""
NIGHTLY, SMOKE = SIZES = ("nightly", "smoke")
"""Values of an experiment's `size`."""
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
        """Return the default at this size; REQUIRED where there is none."""
        return self.default if self.smoke is SAME or size != SMOKE else self.smoke

    def schema(self) -> dict[str, Any]:
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
    "active": Field("bool", "Whether nights run this job."),
    "title": Field("str", "Display name; default: the folder name.", default=""),
    "description": Field("str", "The question it answers, in one or two sentences.", default=""),
    "notify": Field("list", "Slack IDs to ping when it fails.", default=[], of=_NAMES),
    "priority": Field("int", "Jobs with higher priority run earlier.", default=0),
    "timeouts": Field("map", 'Time limit in seconds for each stage, e.g. {"run": 600}.', default={}, of=_TIMEOUTS),
    "env": Field("map", "Additional environment variables for its stages.", default={}, of=_VARIABLES),
}
OF_A_SIZE: dict[str, Field] = {
    NIGHTLY: Field("map", "Fields that apply only if `size` is nightly.", default={}, of=Field("any", "")),
    SMOKE: Field("map", "Fields that apply only if `size` is smoke.", default={}, of=Field("any", "")),
}
"""Overrides for one size."""
EXPERIMENT_FIELDS: Fields = {
    **JOB_FIELDS,
    "tvm_remote": Field("any", "Where its TVM comes from; default: the home's `tvm_remote`.", default=None),
    "tvm_branch": Field(
        "str",
        "Which TVM: `latest`, a version, a branch, tag or commit; default: the home's `tvm_branch`.",
        default=None,
        nullable=True,
    ),
    "tvm_options": Field(
        "map",
        "CMake options of a source build, e.g. `USE_LLVM`; default: the home's.",
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
        "Which defaults apply: those of a night, or small ones that show within seconds whether everything works.",
        default=NIGHTLY,
        choices=SIZES,
    ),
    **OF_A_SIZE,
    "rerun_setup": Field("bool", "Run setup.sh every night, even if nothing changed.", default=False),
    "sandbox": Field(
        "bool",
        "Run its scripts in bubblewrap, without network (setup.sh too), other processes, and files beyond the "
        "system's, its own and the home's TVMs. Without bubblewrap the experiment is rejected.",
        default=False,
    ),
}
SUBSYSTEM_FIELDS: Fields = JOB_FIELDS
HOME_FIELDS: Fields = {
    "tmp_data_dir": Field("str", "Working folder of the nights; also holds the raw measurements.", min=1),
    "backup_dir": Field("str", "Folder of the archives.", min=1),
    "setup_dir": Field("str", "Folder for the output of setup stages.", min=1),
    "artifact_dir": Field("str", "Folder of the TVM artifacts.", default="artifacts", min=1),
    "experiment_dirs": Field(
        "list",
        "Folders with your own experiments, searched in this order before those of the repository.",
        default=[],
        of=_FOLDERS,
    ),
    "subsystem_dirs": Field(
        "list", "Folders with your own subsystems, searched in the same way.", default=[], of=_FOLDERS
    ),
    "tvm_remote": Field(
        "any",
        "Where TVM comes from: `pypi`, `wheel:PACKAGE` (nightly wheels: `wheel:mlc-ai-nightly-cpu`), an object with"
        " `package`, `find_links` or `index`, and `pre`, or a git remote to build from.",
        default="pypi",
    ),
    "tvm_branch": Field(
        "str",
        "Which TVM: `latest` or a version of a wheel; a branch, tag, commit or `pull/NUMBER` of a git remote.",
        default="latest",
        min=1,
    ),
    "measure_last_tvm": Field(
        "choice",
        "When to measure the newest TVM at hand instead of one that cannot be obtained: `unreachable` (its source"
        " cannot be looked up), `always` (or it cannot be built or fails its test), `never`.",
        default="unreachable",
        choices=("unreachable", "always", "never"),
    ),
    "tvm_options": Field(
        "map", "CMake options of a source build, e.g. `USE_LLVM`.", default={}, of=Field("str", "Value.")
    ),
    "tvms": Field(
        "map",
        "Additional TVMs to measure each night, by a name of your choice:"
        ' `{"release": "pypi:0.26.0", "ours": "https://host/tvm@main"}`.',
        default={},
        of=Field("str", "`pypi:VERSION`, `wheel:PACKAGE@VERSION`, `git:REVISION` or `REMOTE@REVISION`.", min=1),
    ),
    "reference": Field(
        "str",
        "The TVM to measure tonight's TVM against: `auto` (of releases the release before, of nightly wheels and source"
        " builds the build before), `none`, a TVM as in `tvms`, or a name in `tvms`.",
        default="auto",
        min=1,
    ),
    "hosts": Field(
        "map",
        "The machines that measure, by a name of your choice (docs/how-to/hosts.md); experiments select from them "
        "with `hosts`.",
        default={},
        of=Field("map", "A host.", of=Field("any", "")),
    ),
    "devices": Field(
        "map",
        "Devices to measure on besides the CPU (docs/how-to/devices.md): `opencl`, `cuda`, `rocm`, `metal`, `vulkan`,"
        " each also with a number as in `cuda:1`, and `remote:NAME`; experiments select from them with `device`.",
        default={},
        of=Field("map", "A device.", of=Field("any", "")),
    ),
    "tvm_source": Field(
        "str",
        "Git remote with the source of TVM's releases. If a wheel has no runtime for a device, the runtime is built "
        "from it.",
        default="https://github.com/apache/tvm",
        min=1,
    ),
    "randomize": Field(
        "bool", "Run experiments in random order (the seed is recorded) instead of by priority and name.", default=True
    ),
    "seed": Field(
        "int", "Seed of the random order; default: a new one each night.", default=None, nullable=True, min=0
    ),
    "timeouts": Field(
        "map", "Time limit in seconds for each stage; a job's own `timeouts` take precedence.", default={}, of=_TIMEOUTS
    ),
    "artifact_timeout_s": Field(
        "int",
        "Time limit in seconds for downloading or building one TVM; null: 3600 for a wheel, 21600 (6 hours) for a "
        "build from source.",
        default=None,
        nullable=True,
        min=1,
    ),
    "max_artifacts_gb": Field(
        "float", "Size limit of all artifacts; the least recently used ones are removed first.", default=20.0, min=0
    ),
    "parallel_stages": Field(
        "int", "Number of stages after `run` that may run in parallel; 0 = one per core.", default=0, min=0
    ),
    "min_free_mb": Field("int", "Free disk space that a night needs to start.", default=500, min=0),
    "backup_copy": Field(
        "str",
        "Object storage for a copy of `backup_dir`, as `s3://BUCKET/FOLDER` (docs/how-to/back-up.md).",
        default="",
        min=0,
    ),
    "keep_archives": Field("int", "Number of archives to keep (two per night).", default=60, min=2),
    "max_raw_gb": Field(
        "float",
        "Size limit of all raw measurements; the oldest nights are removed first.",
        default=20.0,
        min=0,
    ),
    "keep_raw_nights": Field(
        "int",
        "Number of nights whose raw measurements are kept at most, and telemetry (default: 30).",
        default=None,
        nullable=True,
        min=0,
    ),
    "env": Field("map", "Additional environment variables for every stage.", default={}, of=_VARIABLES),
    "telemetry_rate": Field(
        "float",
        "Samples per second of temperatures, clocks, load and memory during each run; 0 = none.",
        1.0,
        min=0,
        max=10,
    ),
    "env_name": Field(
        "str",
        "Name of this machine in records; default: the host name on the first night (results/machine.json).",
        default="",
        min=0,
    ),
    "heartbeat_url": Field(
        "str",
        "URL of a dead man's switch (healthchecks.io, Cronitor, ...): requested with `/start` when a night starts, "
        "unchanged after success, otherwise with `/fail` and the failures (docs/how-to/nightly.md).",
        default="",
        min=0,
    ),
    "heartbeat_style": Field(
        "choice",
        "Format of the ping URLs; `auto` recognizes Cronitor by its host.",
        default="auto",
        choices=("auto", "healthchecks", "cronitor"),
    ),
    "schedule": Field(
        "str",
        "Cron schedule of the nights (`0 3 * * *`, local time), for `watch`; default: taken from the crontab or a "
        "systemd timer.",
        default="",
        min=0,
    ),
    "watch_grace_minutes": Field(
        "int",
        "Minutes that `watch` waits for a night to complete; default: derived from the duration of this home's nights.",
        default=None,
        nullable=True,
        min=1,
    ),
    "prometheus_file": Field(
        "str", "File (*.prom) for each night's metrics, for the textfile collector of node_exporter.", default="", min=0
    ),
    "website_url": Field("str", "URL of the website, for links in messages.", default="", min=0),
    "routes": Field(
        "map",
        "Routes for messages about incidents and nights, by a name of your choice (docs/how-to/routes.md).",
        default={},
        of=Field("map", "A route.", of=Field("any", "")),
    ),
    "owners": Field(
        "list",
        "Who is responsible for which series; a regression pings them once (docs/how-to/routes.md).",
        default=[],
        of=Field("map", "Owners.", of=Field("any", "")),
    ),
    "isolate_candidates": Field(
        "choice",
        "Whether what `try` measures of others (pull requests, forks) is built and run by bubblewrap, without network"
        " and with nothing of this machine but what it needs: `auto` where that can be, `require`, `never`. With"
        " `github_may_ask` it is `require`.",
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
        "Who may request a `try` in a pull request on GitHub.",
        default=[],
        of=Field("str", "A login of GitHub.", min=1),
    ),
    "github_token_file": Field(
        "str",
        "File with the token for the answers (mode 600, outside the home); GITHUB_TOKEN takes precedence.",
        default="~/.config/tvmdash/github_token",
        min=1,
    ),
    "github_login": Field(
        "str",
        "Account that posts the answers; default: looked up at GitHub. For a workflow's own token: "
        "`github-actions[bot]`.",
        default="",
        min=0,
    ),
}
RETIRED_HOME_FIELDS: Mapping[str, str] = {
    "bisect_when_idle": "Bisect what a try found with `bisect`.",
}
"""Obsolete fields that old configs may keep, without effect, and their replacement."""
RETIRED_JOBS: Mapping[tuple[str, str], str] = {
    ("subsystem", "history_check"): "Run `reproduce HOME EXPERIMENT/STAMP` of an old night where `doctor` doubts it.",
}
"""Obsolete jobs by kind and name, and their replacement; a folder of such a name is another job."""

HOST_FIELDS: Fields = {
    "launcher": Field(
        "choice",
        "How the dashboard starts work on the host: `ssh`, `slurm` (srun), or `local`, which gives the home's own "
        "machine tags.",
        choices=("local", "ssh", "slurm"),
    ),
    "address": Field("str", "`ssh`: destination for the ssh command.", default="", min=0),
    "folder": Field(
        "str",
        "`ssh`, `slurm`: absolute path of a folder for the dashboard alone; created if missing. Holds code, TVM and "
        "raw data.",
        default="",
        min=0,
    ),
    "tags": Field("list", "Names that select several hosts at once.", default=[], of=Field("str", "A tag.", min=1)),
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
        "int", "Time limit in minutes for all measurements of a night (`slurm`: srun --time).", default=480, min=1
    ),
    "patience_minutes": Field(
        "int", "Minutes to wait until the host, or Slurm's queue, lets the night start.", default=60, min=1
    ),
}
"""Config fields of one host."""
DEVICE_FIELDS: Fields = {
    "target": Field(
        "map",
        'TVM\'s target for it: fields that are added to its kind\'s own, as `{"arch": "sm_90"}`. Of a remote processor,'
        " the whole target.",
        default={},
        of=Field("any", ""),
    ),
    "tracker_host": Field("str", "`remote:NAME`: host of TVM's RPC tracker.", default="", min=0),
    "tracker_port": Field("int", "`remote:NAME`: port of TVM's RPC tracker.", default=9190, min=1, max=65535),
    "key": Field("str", "`remote:NAME`: key of the device at the tracker; default: NAME.", default="", min=0),
    "kind": Field(
        "choice",
        "`remote:NAME`: kind of device.",
        default="cpu",
        choices=("cpu", "opencl", "cuda", "rocm", "metal", "vulkan"),
    ),
    "cc": Field("str", "`remote:NAME`: compiler that links for it; if not set, the device links.", default="", min=0),
}
"""Config fields of one device."""
_LEVEL = Field("str", "A level of docs/explanation/verdict.md.", min=1)
ROUTE_FIELDS: Fields = {
    "kind": Field(
        "choice",
        "Kind of route: `email` (SMTP), `webhook`, `github` (an issue for each incident), `slack` (threads), `apprise`"
        " (any service that Apprise knows).",
        choices=("email", "webhook", "github", "slack", "apprise"),
    ),
    "at_once": Field(
        "list",
        "Incident levels that get a message of their own: `regression`, `changed` (a move of the machine as well),"
        " `improved`.",
        default=["regression"],
        of=_LEVEL,
    ),
    "digest": Field(
        "list",
        "Levels of incidents and verdicts that are collected in at most one message per night; default: `incomplete` "
        "and `no_data` for a route that no owner names, so that a night in which something failed is told.",
        default=[],
        of=_LEVEL,
    ),
    "quiet_hours": Field(
        "str",
        "Hours without messages, e.g. `22:00-07:00`. Held messages are sent by `dashboard routes HOME --send` or the "
        "next night.",
        default="",
        min=0,
    ),
    "time_zone": Field("str", "Time zone of the quiet hours, e.g. `Europe/Berlin`.", default="UTC", min=1),
    "wake": Field("list", "Levels that are sent even in quiet hours.", default=[], of=_LEVEL),
    "seconds": Field("float", "Time limit of the route per night.", default=60.0, min=1, max=1200),
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
        "`email`: connection security; `none` only on this machine.",
        default="starttls",
        choices=("starttls", "tls", "none"),
    ),
    "user": Field("str", "`email`: login name; empty: no login.", default="", min=0),
    "from": Field("str", "`email`: the sender's address.", default="", min=0),
    "to": Field(
        "list",
        "`email`: recipients of every message; owners get only messages that ping them.",
        default=[],
        of=Field("str", "An address.", min=1),
    ),
    "url": Field("str", "`webhook`: https:// URL, if it is not secret.", default="", min=0),
    "repository": Field("str", "`github`: OWNER/NAME.", default="", min=0),
    "labels": Field("list", "`github`: labels of the issues.", default=[], of=Field("str", "A label.", min=1)),
    "channel": Field("str", "`slack`: ID of the channel (C...).", default="", min=0),
}
"""Config fields of one route."""
_GLOB = "with * and ?"
OWNER_FIELDS: Fields = {
    "series": Field("str", f"Their series, by name or ID, {_GLOB}.", default="*", min=1),
    "experiment": Field("str", f"The experiments, {_GLOB}.", default="*", min=1),
    "host": Field("str", f"The hosts, {_GLOB}; `local` is the home's own machine.", default="*", min=1),
    "name": Field("str", "Name in messages, e.g. `CNN team`.", default="", min=0),
    "slack": Field("list", "Slack IDs to ping.", default=[], of=_NAMES),
    "email": Field(
        "list", "E-mail addresses to send the message to.", default=[], of=Field("str", "An address.", min=1)
    ),
    "github": Field("list", "GitHub logins to mention.", default=[], of=Field("str", "A login.", min=1)),
    "routes": Field(
        "list",
        "Routes for their series. A route that no owner lists carries everything.",
        default=[],
        of=Field("str", "A name in the home's `routes`.", min=1),
    ),
}
"""Config fields of one owner."""
FIELD_SETS: Mapping[str, Fields] = {
    "timing": {
        "number": Field("int", "Calls per sample; 0 = as many as needed to fill `min_repeat_ms`.", default=0, min=0),
        "repeat": Field(
            "int",
            "Samples of a point per process; after three processes, or one pair, as many as the spread of the earlier "
            "ones requires, up to 4 times this.",
            default=10,
            min=1,
            smoke=3,
        ),
        "min_repeat_ms": Field(
            "float", "Minimum length of a sample in ms if `number` is 0.", default=20.0, min=0, smoke=1.0
        ),
        "warmup": Field("int", "Warm-up samples that are discarded.", default=1, min=1),
        "max_seconds": Field(
            "float",
            "Time limit for the samples in a process; takes fewer samples, but at least 3, to stay within it.",
            default=5.0,
            min=0,
            smoke=0.1,
        ),
        "processes": Field("int", "Minimum number of processes that measure each point.", default=3, min=1, smoke=1),
        "max_processes": Field(
            "int", "Maximum number of processes for a point if its interval remains wide.", default=6, min=1, smoke=1
        ),
        "paired": Field(
            "bool",
            "Measure each point in turn with the night's reference (the home's `reference`), if there is one.",
            default=True,
        ),
        "interval_percent": Field(
            "float",
            "Stop measuring a point once the half-width of the 95 % interval of its median is at most this fraction "
            "of the median.",
            default=5.0,
            min=0,
        ),
        "pairs": Field(
            "int",
            "Minimum number of process pairs (tonight's TVM and the reference) that measure a point in turn; replaces "
            "`processes`.",
            default=5,
            min=1,
            smoke=2,
        ),
        "max_pairs": Field(
            "int", "Maximum number of such pairs for a point if its ratio remains uncertain.", default=8, min=1, smoke=2
        ),
        "pair_percent": Field(
            "float",
            "Stop measuring a ratio to the reference once the half-width of its 95 % interval is at most this "
            "fraction.",
            default=1.0,
            min=0,
        ),
        "max_minutes": Field(
            "float",
            "Time budget of the run in minutes. Each group gets one process; no further process starts that would "
            "exceed it.",
            default=30.0,
            min=0,
        ),
        "process_minutes": Field(
            "float",
            "Time limit in minutes of a measuring process; if it is exceeded, the process is killed and its current "
            "point fails.",
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
            "Record each operator of TVM's networks as a series of its own, from ten profiled runs in every process.",
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
    "slack": {
        "channel": Field(
            "str", "ID of the Slack channel (C...), needed with a bot token; a webhook has its own.", default=""
        ),
        "token_file": Field(
            "str",
            "File with mode 600, outside the home, that holds the bot token (xoxb-...) or the webhook's URL; none"
            " there: no Slack.",
            default="~/.config/tvmdash/slack_token",
        ),
        "slack_seconds": Field(
            "float",
            "The most time that Slack may cost this subsystem in a night.",
            default=60.0,
            min=1,
            max=1200,
        ),
    },
}
