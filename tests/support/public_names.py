"""Names for researchers: public, and not at the top level."""

import inspect

import lexbandits as lb


def research_names():
    """`policies.…` and `simulation.…` that the top level does not have."""
    owned = {"policies": vars(lb.policies), "simulation": lb.simulation.__all__}
    return [
        f"{package}.{name}"
        for package, names in owned.items()
        for name in names
        if name[0] != "_" and not hasattr(lb, name) and not inspect.ismodule(vars(lb.policies).get(name))
    ]
