"""Ways to edit a TVM without its sources at hand, as an edit of the source would do it."""

from __future__ import annotations

import importlib
import operator
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CODE_GENERATION = "code generation"
"""What is to be said of an edit behind all passes."""


@dataclass(frozen=True)
class Source:
    """Python of TVM where `old` stands once and becomes `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Edit:
    """function: a pattern that the edited function's name matches; name: the pass that the edit is in."""

    workload: str
    values: Mapping[str, Any]
    function: str
    name: str
    plant: Callable[[], None] | Source


def overlay(site: Path, source: Source, folder: Path) -> Path:
    """A site with this one file edited; everything else in it are links."""
    *parents, last = source.path.split("/")
    here, there = site, folder
    for name in [*parents, last]:
        there.mkdir()
        for entry in here.iterdir():
            if entry.name not in {name, "__pycache__"}:
                os.symlink(entry, there / entry.name)
        here, there = here / name, there / name
    text = here.read_text()
    assert text.count(source.old) == 1, f"{source.path} holds {source.old!r} {text.count(source.old)} times"
    there.write_text(text.replace(source.old, source.new))
    return folder


def legalize(name: str, compute: Callable[..., Any]) -> Callable[[], None]:
    """The operator becomes what `compute` makes of its arguments."""

    def plant() -> None:
        import tvm

        hint = name.rpartition(".")[2]
        tvm.ir.register_op_attr(
            name,
            "FLegalize",
            lambda builder, call: builder.call_te(compute, *call.args, primfunc_name_hint=hint),
            level=20,
        )

    return plant


def disable_rule(name: str) -> Callable[[], None]:
    """A rule of dlight that schedules nothing any more."""

    def plant() -> None:
        from tvm.s_tir import dlight

        getattr(dlight.gpu, name).apply = lambda *_: None

    return plant


def replace_pass(module: str, name: str, work: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """The pass under its own name, doing `work` of the pass as it was and a module."""

    def plant() -> None:
        import tvm

        place = importlib.import_module(module)
        before = getattr(place, name)

        def factory(*given: Any, **options: Any) -> Any:
            made = before(*given, **options)

            @tvm.transform.module_pass(opt_level=0, name=str(made.info.name))
            def edited(mod: Any, context: Any) -> Any:
                with tvm.transform.PassContext(opt_level=context.opt_level, config=dict(context.config)):
                    return work(made, mod)

            return edited

        setattr(place, name, factory)

    return plant


def edit_pass(module: str, name: str, function: str) -> Callable[[], None]:
    """A pass that does one thing more to one function: its first constant is another one."""
    return change_after(module, name, function, _other_constant)


def change_after(module: str, name: str, function: str, change: Callable[[Any], Any]) -> Callable[[], None]:
    """A pass after which the PrimFuncs whose names hold `function` are what `change` makes of them."""
    return replace_pass(module, name, lambda made, mod: change_functions(made(mod), function, change))


def configured(module: str, name: str, config: Mapping[str, Any]) -> Callable[[], None]:
    """A pass whose own defaults are these."""

    def work(made: Any, mod: Any) -> Any:
        import tvm

        context = tvm.transform.PassContext.current()
        with tvm.transform.PassContext(opt_level=context.opt_level, config={**dict(context.config), **config}):
            return made(mod)

    return replace_pass(module, name, work)


def change_functions(mod: Any, function: str, change: Callable[[Any], Any]) -> Any:
    """The module with some of its PrimFuncs changed."""
    from tvm import tirx

    changed = mod.clone()
    for variable in [variable for variable in mod.functions if function in variable.name_hint]:
        if isinstance(mod[variable], tirx.PrimFunc):
            changed.update_func(variable, change(mod[variable]))
    return changed


def _other_constant(found: Any) -> Any:
    import tvm.script

    text = _CONSTANT.sub(lambda number: f"T.float32({float(number[1]) * 0.5 + 0.25})", found.script(), count=1)
    return tvm.script.from_source(text, check_well_formed=False)


_CONSTANT = re.compile(r"T\.float32\(([-+.e\d]+)\)")


def scaled(compute: str) -> Callable[..., Any]:
    """The function of topi, its result times 1.5."""

    def work(*tensors: Any) -> Any:
        from tvm import topi

        made = operator.attrgetter(compute)(topi)(*tensors)
        return topi.multiply(made, 1.5)

    return work


def change_build(target: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[], None]:
    """A code generator that gets what `change` makes of its module and target."""

    def plant() -> None:
        import tvm  # noqa: F401 - registers the generators
        import tvm_ffi

        name = f"target.build.{target}"
        before = tvm_ffi.get_global_func(name)
        tvm_ffi.register_global_func(name, lambda mod, made: before(*change(mod, made)), override=True)

    return plant
