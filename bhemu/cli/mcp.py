"""`bhemu mcp`: the commands as tools of an MCP server, confined to a folder.

A call of a tool runs the command with --json in a process of its own, which may crash, and is ended
when its time is over; its document is the answer.
"""

import json
import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import click

from bhemu import __version__
from bhemu.cli import output
from bhemu.errors import EXIT_OK, BhemuError, InputError, Internal, Limit
from bhemu.program import files

_MOST_SECONDS = 600.0
_MOST_BYTES = 4_000_000  # of an answer, which an agent reads
_SKILL = "bhemu://skill"
_ABOUT = (
    "bhemu emulates Tenstorrent Blackhole Tensix tiles. Each tool answers with one JSON document;"
    " its verdict is ok, kernel bug, race, not modelled, bad input or limit. Loop: build, run, why,"
    f" change the source, again. The resource {_SKILL} says more."
)


@click.command("mcp")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--skill", is_flag=True, help="print what an agent has to know, and end")
def mcp_command(folder: Path, skill: bool) -> int:
    """Serve run, why, profile, explain, read, step, build to an agent.

    An MCP server on standard input and output; --skill says how to use it. Files outside of
    FOLDER, the current one by default, are neither read nor written. It needs pip install
    'bhemu[mcp]'.
    """
    if skill:
        output.say(skill_text(), nl=False)
        return EXIT_OK
    if not files.is_folder(folder):
        raise InputError(f"{folder} is no folder", hint="name the folder that holds the programs")
    try:
        import mcp.server.mcpserver
    except ImportError as problem:
        hint = "pip install 'bhemu[mcp]'"
        raise InputError(f"the library mcp cannot be imported: {problem}", hint=hint) from problem
    server = mcp.server.mcpserver.MCPServer(
        "bhemu", version=__version__, instructions=_ABOUT, log_level="WARNING"
    )
    made = _Tools(folder.resolve())
    for tool in (made.run, made.why, made.profile, made.explain, made.read, made.step, made.build):
        server.add_tool(tool)
    server.resource(_SKILL, name="skill", mime_type="text/markdown")(skill_text)
    server.run("stdio")
    return EXIT_OK


def skill_text() -> str:
    """What an agent has to know (data/SKILL.md)."""
    return resources.files("bhemu").joinpath("data/SKILL.md").read_text(encoding="utf-8")


def _error_document(error: BhemuError) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(output.document(error.as_dict(), error.exit_code))
    return document


class _Tools:
    """Commands of bhemu in a folder, outside of which they touch no file.

    The docstrings of the tools are what an agent reads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def _ask(
        self, command: str, *given: str, seconds: float, also: Sequence[str] = (), **options: Any
    ) -> dict[str, Any]:
        """The document of a command; of one that was ended or has crashed, what happened.

        The first argument, and `also`, are paths, which must not lead out of the folder.
        """
        import anyio

        for name in (*given[:1], *also):
            if "\0" in name or not files.is_inside(self._folder / name, self._folder):
                return _error_document(InputError(f"{name} lies outside of {self._folder}"))
        flags = [f"--{name}={value}" for name, value in options.items() if value not in ("", None)]
        line = [sys.executable, "-m", "bhemu", command, "--json", *flags, "--", *given]
        environment = {**os.environ, files.CONFINED: str(self._folder)}
        seconds = min(max(seconds, 1.0), _MOST_SECONDS)
        try:
            with anyio.fail_after(seconds):
                done = await anyio.run_process(
                    line, cwd=self._folder, env=environment, check=False, start_new_session=True
                )
        except TimeoutError:
            text = f"bhemu {command} took more than {seconds:g} s"
            return _error_document(Limit(text, category="Timeout"))
        if len(done.stdout) > _MOST_BYTES:
            text = f"the answer of bhemu {command} has {len(done.stdout)} bytes"
            return _error_document(Limit(text, hint=f"{_MOST_BYTES} are told: ask for less"))
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            said = done.stderr.decode(errors="replace")[-2000:]
            text = f"bhemu {command} ended with {done.returncode}: {said}"
            return _error_document(Internal(text))
        return found

    async def run(
        self,
        program: str,
        checks: str = "",
        limit: int | None = None,
        late: int | None = None,
        seconds: float = 60,
    ) -> dict[str, Any]:
        """Run a program (folder or PROGRAM.toml) and compare its outputs with what is expected.

        checks: "all", or names such as "races,uninit" (more runs). limit: clock units. late: a
        seed; words, cores and transfers are then late, as hardware may be.
        """
        asked: dict[str, Any] = {"check": checks, "limit": limit, "late": late}
        return await self._ask("run", program, seconds=seconds, **asked)

    async def why(self, program: str, place: str = "", seconds: float = 180) -> dict[str, Any]:
        """Run a program and tell what is wrong: findings, the likeliest first, with source lines.

        place: an element of an output (y[3,5]), an address with a length (0x20000:4), a part of
        the state (sem:1): then the chain of changes that made it what it is.
        """
        asked = (program, place) if place else (program,)
        return await self._ask("why", *asked, seconds=seconds)

    async def profile(self, program: str, seconds: float = 180) -> dict[str, Any]:
        """Run a program in modelled time: cycles by agent, unit and source line, and waits."""
        return await self._ask("profile", program, seconds=seconds)

    async def explain(self, names: list[str]) -> dict[str, Any]:
        """Say what words, instructions, fields, addresses, registers or rules are."""
        return await self._ask("explain", *names, also=names, seconds=60)

    async def read(self, program: str, names: list[str], seconds: float = 60) -> dict[str, Any]:
        """The state where a program ended, or of a STATE.npz: dst:0-7, sem, l1:0x40000-0x400ff."""
        return await self._ask("dump", program, *names, seconds=seconds)

    async def step(
        self, program: str, commands: list[str], save: str = "", seconds: float = 60
    ) -> dict[str, Any]:
        """Execute commands of the stepper in order, such as "break main trisc1", "continue", "bt".

        save: write the state after the last one to this FILE.npz; as `program` of the next call it
        is where that one begins. "help" lists the commands.
        """
        script = ";".join(commands) or "where"
        more = {"execute": script, "save": save}
        also = [save] if save else []
        return await self._ask("step", program, also=also, seconds=seconds, **more)

    async def build(self, folder: str, seconds: float = 120) -> dict[str, Any]:
        """Compile and link the ELFs of a program from its C sources, those that have changed."""
        return await self._ask("build", folder, seconds=seconds)
