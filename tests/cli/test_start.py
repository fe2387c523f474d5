"""What commands import: modules of the package, bytes of their bytecode, and what not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LOADED = """
import json, sys, time
from bhemu.__main__ import main
sys.argv = json.loads(sys.argv[1])
try:
    main()
except SystemExit as end:
    assert not end.code or sys.argv[1] == "why", end.code
finally:
    files = {n: getattr(m, "__cached__", None) for n, m in sys.modules.items()}
    files["other threads"] = str(time.process_time() - time.thread_time())
    print(json.dumps(files), file=sys.stderr)
"""


class Most(NamedTuple):
    """The most modules that a command may import, and kilobytes of their bytecode.

    A twentieth above what it needs: whoever exceeds it imports something earlier than where it is
    used, or raises the number and says why.
    """

    modules: int
    kilobytes: int
    never: str  # what it does without


_ALWAYS = "numba llvmlite logging concurrent.futures"
COMMANDS = {
    "--help": Most(11, 77, f"{_ALWAYS} numpy tomllib"),
    "isa SFPMAD": Most(28, 306, f"{_ALWAYS} numpy unicorn elftools"),
    "explain SFPMAD": Most(28, 306, f"{_ALWAYS} numpy unicorn elftools"),
    "run -q --compile=wait elfs/add1": Most(
        139, 2002, f"{_ALWAYS} rich bhemu.tensix.units bhemu.riscv.isa bhemu.timing.loop"
    ),
    "why elfs/hang_cycle": Most(289, 4800, "numba llvmlite logging concurrent.futures"),
}


def loaded(root: Path, command: str) -> dict[str, str | None]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(["bhemu", *command.split()])],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", COMMANDS)
def test_modules_and_bytes(pytestconfig: pytest.Config, command: str) -> None:
    loaded(pytestconfig.rootpath, command)  # what is kept for these sources is there from now on
    found, most = loaded(pytestconfig.rootpath, command), COMMANDS[command]
    assert float(found.pop("other threads")) < 0.04  # seconds; numpy's would wait busily for 0.05
    own = {name: path for name, path in found.items() if name.partition(".")[0] == "bhemu"}
    size = sum(Path(path).stat().st_size for path in own.values() if path) / 1000
    assert len(own) <= most.modules, sorted(own)
    assert 0 < size <= most.kilobytes
    imported = {*found} & {*most.never.split()}
    assert not imported
