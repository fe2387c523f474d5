"""The checks: one file each, which declares its CHECK."""

import importlib
import pkgutil
from functools import cache

from bhemu.errors import InputError
from bhemu.program.table import suggestion
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding


@cache
def every() -> dict[str, Check]:
    """All checks by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").CHECK for name in names]
    return {check.name: check for check in found}


def named(text: str) -> list[Check]:
    """The checks that `--check` names: NAME,... or all."""
    known = every()
    if text.strip() == "all":
        return list(known.values())
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise InputError(
                f"no check is called {name!r}",
                hint=suggestion(name, list(known)) or f"checks: {', '.join(known)}",
            )
    return [known[name] for name in names]


def fitting(context: Context) -> list[Check]:
    """The checks that fit how the run ended, the best first."""
    fits = [(check.applies(context.symptom), check) for check in every().values()]
    return [check for fit, check in sorted(fits, key=lambda one: -one[0]) if fit > 0]


def findings(context: Context, checks: list[Check]) -> list[Finding]:
    """What the checks find, the likeliest first; those that come too late are `skipped`."""
    found: list[Finding] = []
    for check in checks:
        if context.late:
            context.skipped.append(check.name)
            continue
        context.say(f"checking {check.name}")
        found += check.run(context)
    return likeliest(found)


def likeliest(found: list[Finding]) -> list[Finding]:
    """The findings in the order in which a user should look at them."""
    return sorted(found, key=lambda one: -one.likelihood)
