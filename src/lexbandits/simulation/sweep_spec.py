"""TOML -> instances and cells: every policy of the file against every instance of the file."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lexbandits._validation import known_names, toml_table, whole
from lexbandits.environments.examples import paper_instance, random_instance
from lexbandits.environments.instance import Instance
from lexbandits.policies import BY_NAME, Policy
from lexbandits.simulation.oracle_settings import oracle_settings
from lexbandits.simulation.sweep import Cell

Made = TypeVar("Made")

FROM_INSTANCE = "instance"  # the value of a setting that a policy is to be told truthfully


class SweepSpec(NamedTuple):
    """What a file asks for."""

    cells: list[Cell]
    replications: int
    seed: int


def load(path: str | Path) -> SweepSpec:
    """Read a file; what is wrong with it is a ValueError that names the place and the nearest word.

    Modules named in it are looked for beside the file too, from here on.
    """
    beside = str(Path(path).resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    return _read(path, parsed)


def load_instance(path: str | Path) -> Instance:
    """Read a file that describes one instance: what a table [instances.NAME] of a spec may hold."""
    return _read(path, lambda table: _instance("the file", table))


def _read(path: str | Path, parse: Callable[[Mapping[str, Any]], Made]) -> Made:
    table = toml_table(path)
    try:
        return parse(table)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def parsed(table: Mapping[str, Any]) -> SweepSpec:
    """A file's content as cells.

    >>> spec = parsed({
    ...     "horizon": 1000,
    ...     "replications": 5,
    ...     "instances": {"small": {"means": [[1, 0], [1, 1]]}},
    ...     "policies": {"In": {"policy": "LexElimIn", "delta": 0.1, "tradeoff": "instance"}},
    ... })
    >>> [(cell.name, cell.policy, cell.horizon) for cell in spec.cells]
    [('In', LexElimIn(n_arms=2, n_objectives=2, delta=0.1, tradeoff=0.0, noise_sd=1.0), 1000)]
    """
    _known("the file", table, ("seed", "replications", "horizon", "instances", "policies"))
    instances = {
        name: _instance(f"instances.{name}", told) for name, told in _tables(table, "instances").items()
    }
    cells = []
    for name, told in _tables(table, "policies").items():
        where = f"policies.{name}"
        horizon = told.get("horizon", table.get("horizon"))
        if horizon is None:
            raise ValueError(f"{where} needs a horizon, its own or the file's")
        chosen = told.get("instances", list(instances))
        if not isinstance(chosen, list):
            raise TypeError(f"{where}.instances must be a list of names, got {chosen!r}")
        _known(f"{where}.instances", chosen, instances)
        for key in chosen:
            cells.append(
                Cell(
                    name if len(instances) == 1 else f"{name} on {key}",
                    _policy(where, told, instances[key]),
                    instances[key],
                    whole("horizon", horizon, least=0),
                )
            )
    return SweepSpec(
        cells,
        whole("replications", table.get("replications", 100), least=1),
        whole("seed", table.get("seed", 0), least=0),
    )


def _instance(where: str, told: Mapping[str, Any]) -> Instance:
    """`paper = K`, `random = {…}` with the arguments of random_instance, or the arguments of Instance."""
    match told:
        case {"paper": n_arms}:
            _known(where, told, ("paper",))
            return paper_instance(n_arms)
        case {"random": dict(arguments)}:
            _known(where, told, ("random",))
            _known(f"{where}.random", arguments, inspect.signature(random_instance).parameters)
            return _made(where, random_instance, arguments)
        case _:
            known = [*inspect.signature(Instance).parameters, "paper", "random"]
            _known(where, told, known)
            return _made(where, Instance, told)


def _policy(where: str, told: Mapping[str, Any], instance: Instance) -> Policy:
    if "policy" not in told:
        raise ValueError(f'{where} needs a policy, "module:Class" or one of {", ".join(BY_NAME)}')
    made = _class(f"{where}.policy", told["policy"])
    takes = set(inspect.signature(made).parameters) - {"n_arms", "n_objectives"}
    _known(where, told, ("policy", "horizon", "instances", *sorted(takes)))
    known = oracle_settings(instance)
    if wrong := [key for key in takes & told.keys() if told[key] == FROM_INSTANCE and key not in known]:
        raise ValueError(f'{where}.{wrong[0]} cannot be "{FROM_INSTANCE}"; only {", ".join(known)} can')
    settings = {key: known[key] if told[key] == FROM_INSTANCE else told[key] for key in takes & told.keys()}
    return _made(where, made, {"n_arms": instance.n_arms, "n_objectives": instance.n_objectives, **settings})


def _class(where: str, name: Any) -> type[Policy]:
    """A policy of the package by its name, or one of your own as "module:Class"."""
    if not isinstance(name, str) or ":" not in name:
        _known(where, [name], BY_NAME)
        return BY_NAME[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{where}: cannot find {name!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise TypeError(f"{where}: {name!r} must be a class derived from lexbandits.Policy, got {found!r}")
    return found


def _made(where: str, make: Callable[..., Made], arguments: Mapping[str, Any]) -> Made:
    """`make(**arguments)`; what it objects to is said with the place in the file."""
    try:
        inspect.signature(make).bind(**arguments)
        return make(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def _tables(table: Mapping[str, Any], key: str) -> Mapping[str, Mapping[str, Any]]:
    found = table.get(key)
    if not isinstance(found, dict) or not found or not all(isinstance(v, dict) for v in found.values()):
        raise ValueError(f"the file needs tables [{key}.NAME], got {found!r}")
    return found


def _known(where: str, words: Iterable[Any], known: Iterable[str]) -> None:
    allowed = list(known)
    for word in words:
        if word not in allowed:
            raise ValueError(f"unknown {word!r} in {where}; {known_names(word, allowed, 'known:')}")
