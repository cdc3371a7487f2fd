"""A tuning database made at once: schedules without a search, for tests of what is done with one."""

from __future__ import annotations

from pathlib import Path

from tvmdash import networks
from tvmdash.relax_util import lowering, tuning
from tvmdash.relax_util.targets import make_target
from tvmdash.relax_util.tuning import FILES, Subject


def make(subject: Subject, folder: Path) -> int:
    """Leave a database in `folder` that unrolls the last loop of every kernel; how many kernels there are."""
    import tvm
    from tvm.s_tir import meta_schedule

    network = networks.NETWORKS[subject.network]()
    module = lowering.lower(network, networks.make_weights(network, 0), subject.batch)
    lowered = tuning.lowered(module, subject.pipeline, subject.target)
    target = make_target(subject.target)
    folder.mkdir(parents=True, exist_ok=True)
    database = meta_schedule.database.JSONDatabase(*(str(folder / name) for name in FILES))
    tasks = meta_schedule.relax_integration.extract_tasks(lowered, target, params={})
    for task in tasks:
        kernel = task.dispatched[0]
        schedule = tvm.s_tir.Schedule(kernel)
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            schedule.unroll(schedule.get_loops(block)[-1])
        arguments = meta_schedule.arg_info.ArgInfo.from_entry_func(kernel, remove_preproc=True)
        workload = database.commit_workload(kernel)
        record = meta_schedule.database.TuningRecord(schedule.trace, workload, [1e-6], target, arguments)
        database.commit_tuning_record(record)
    return len(tasks)
