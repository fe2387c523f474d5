"""Commands for hosts: `bhemu serve`, `bhemu simulator` and `bhemu llk`; for agents `bhemu mcp`."""

import functools
import gc
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu import __version__
from bhemu.cli import output
from bhemu.cli.options import FilePath, all_of, flag
from bhemu.errors import EXIT_OK, BhemuError, InputError, Internal, Limit, NoProgress
from bhemu.program import files, recorded
from bhemu.program.options import CHIPS, flag_of, given_in

if TYPE_CHECKING:
    from bhemu.hosts.naming import Names
    from bhemu.hosts.session import Connection, Session
    from bhemu.machine.machine import Chip, Machine

ADDRESS = "NNG_SOCKET_ADDR"
LIBRARY = "BHEMU_LIBRARY_FD"  # the socket of a host that has loaded libbhemu.so
_PACKAGES = ("pynng", "flatbuffers")
_TABLE, _PAGE, _FOUND = ".profile.txt", ".profile.html", ".check.txt"  # beside a session
_LAST = "last.session"  # in the folder, of a profile or check without --record
_REFERENCE = "llk"  # hosts run production kernels, which some rules of ttsim refuse


class _OneOf(click.Choice):  # type: ignore[type-arg]
    """One of some words, which a message lists as they are written."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What the message says of another value."""
        return f"{value!r} is not one of {', '.join(self.choices)}"


serve_options = all_of(
    *(
        flag(name, option, f" (default {_REFERENCE})" if name == "reference" else "", _OneOf)
        for name, option in given_in("serve").items()
    ),
    click.option(
        "--keep",
        type=FilePath(),
        metavar="STATE.npz",
        help="write the chip's state here when it fails",
    ),
    click.option(
        "--record",
        type=FilePath(),
        metavar="SESSION",
        help="write what the host does to this file, which runs as a program",
    ),
    click.option(
        "--profile",
        is_flag=True,
        help="after a session, write where its cycles go beside it, or in FOLDER",
    ),
    click.option(
        "--check",
        is_flag=True,
        help="after a session, tell what nothing orders and what nothing has written",
    ),
    click.option(
        "--elfs",
        type=FilePath(),
        multiple=True,
        metavar="FOLDER",
        help="look for the ELFs of kernels and firmware here too (may be repeated)",
    ),
    click.option(
        "--chips",
        type=_OneOf([str(n) for n in CHIPS]),
        default="1",
        callback=lambda context, parameter, value: int(value),
        show_default=True,
        help="chips that Ethernet links connect, of a host that loads the library",
    ),
    click.option("--remote", is_flag=True, help="serve a host on another machine too"),
    click.option("-v", "--verbose", is_flag=True, help="say what a session was, and more"),
)
"""How the chip runs and what is told about it."""


def arguments(values: dict[str, Any]) -> list[str]:
    """The options as `bhemu serve` reads them; InputError for a file that cannot be written."""
    given = [f"--{name}" for name in ("remote", "verbose", "profile", "check") if values[name]]
    if values["chips"] > 1:
        if values["profile"]:
            raise InputError(
                "--profile: linked chips have no modelled time, so no profile",
                hint="without --chips for what one chip runs alone; --record, --check, --keep work",
            )
        given += ["--chips", str(values["chips"])]
    for name, option in given_in("serve").items():
        given += [] if values[name] is None else [f"--{flag_of(name, option)}", str(values[name])]
    for folder in values["elfs"]:
        given += ["--elfs", str(Path(folder).resolve())]
    if values["keep"] is not None:
        files.check_writable(Path(values["keep"]), "--keep")
        given += ["--keep", str(Path(values["keep"]).resolve())]
    if values["record"] is not None:
        for path in _sessions(values):
            recorded.check_target(path)
        given += ["--record", str(Path(values["record"]).resolve())]
    return given


def check_packages() -> None:
    """InputError when a package of the extra `hosts` is not there."""
    if missing := [one for one in _PACKAGES if importlib.util.find_spec(one) is None]:
        what = f"the package {missing[0]} is" if len(missing) == 1 else "pynng and flatbuffers are"
        raise InputError(
            f"{what} not installed: the extra hosts brings what ttnn's side needs",
            hint="pip install 'bhemu[hosts]', or of a wheel: pip install 'bhemu-....whl[hosts]'",
        )


@click.command("serve")
@serve_options
def serve_command(**values: Any) -> int:
    """Serve a chip to the host that listens at NNG_SOCKET_ADDR.

    `bhemu simulator` writes the folder whose run.sh calls this; hosts start it themselves.
    """
    if LIBRARY in os.environ:
        return _serve_library(os.environ.pop(LIBRARY), values)
    if values["chips"] > 1:
        raise InputError("--chips: messages know one chip", hint="load libbhemu.so instead")
    address = os.environ.get(ADDRESS)
    if not address:
        hint = "a host sets it and starts the run.sh that `bhemu simulator` writes"
        raise InputError(f"{ADDRESS} is not set", hint=hint)
    try:
        check_packages()
    except InputError:
        from bhemu.hosts.umd import decline

        decline(address)
        raise
    from bhemu.hosts.umd import guarded

    def connect() -> "Connection":
        from bhemu.hosts.session import Connection

        return Connection(address, remote=values["remote"])

    return guarded(lambda: _serve(connect, values), lambda how: _lost(connect, how))


def _serve(connect: "Callable[[], Connection]", values: dict[str, Any]) -> int:
    from bhemu.hosts.session import Session
    from bhemu.hosts.umd import end_soon

    connection = connect()
    session = Session(connection, functools.partial(output.show, as_json=False))

    def code_of_the_end() -> int:
        """A chip that is still being made when its host ends says so if the host did not end it."""
        return EXIT_OK if connection.asked else output.show(connection.no_host(), as_json=False)

    connection.on_lost = functools.partial(end_soon, code_of_the_end)
    code = EXIT_OK
    try:
        code = _session(session, values)
    except Exception as problem:  # the host waits: whatever it is, it must hear of it
        code = output.show(problem, as_json=False)
        session.refuse()
    finally:
        connection.close()
    if values["verbose"]:
        output.say(f"bhemu serve: {session}", err=True)
    return code


def _session(session: "Session", values: dict[str, Any]) -> int:
    progress = output.Progress(quiet=False)
    with progress.starting():
        from bhemu.hosts.umd import Device
        from bhemu.machine.machine import Chip

        options = _options(values, progress)
        chip = Chip(**options)
    device, names = Device(chip), _names(chip, values)
    device.recorder = next(iter(_recorders(values, options)), None)
    device.look = names.look
    device.on_failure = functools.partial(_save_stopped, chip, names, values["keep"])
    try:
        session.serve(device)
    finally:
        if device.recorder is not None:
            _end_record([device.recorder], [chip], values, waits=True)
    return EXIT_OK if device.failure is None else device.failure.exit_code


def _options(values: dict[str, Any], progress: output.Progress) -> dict[str, Any]:
    """The options of the session's chip."""
    from bhemu.program.options import silent

    known = {name: values[name] for name in given_in("serve") if values[name] is not None}
    known.setdefault("reference", _REFERENCE)
    return {**known, "livelock": 0, "progress": progress if values["verbose"] else silent}


def _sessions(values: dict[str, Any]) -> list[Path]:
    """The file of each chip's session, where one is asked for."""
    path, chips = values["record"], values["chips"]
    if path is None:
        return []
    return [Path(path)] if chips == 1 else [Path(f"{path}.chip{n}") for n in range(chips)]


def _recorders(values: dict[str, Any], options: dict[str, Any]) -> list[recorded.Recorder]:
    """Those that write the session of each chip, where that is asked for."""
    for name in ("profile", "check"):
        if values[name] and values["record"] is None:
            raise InputError(f"--{name} is of a session", hint="--record SESSION")
    given = {name: value for name, value in options.items() if name != "progress"}
    chips = values["chips"]
    return [recorded.Recorder(path, given, (n, chips)) for n, path in enumerate(_sessions(values))]


def _end_record(
    recorders: Sequence[recorded.Recorder],
    chips: "Sequence[Chip]",
    values: dict[str, Any],
    *,
    waits: bool,
) -> None:
    """The session is over: other processes make its profile, and look at it.

    waits: the host lives, and may wait until it is told what they have found.
    """
    for recorder, chip, path in zip(recorders, chips, _sessions(values), strict=True):
        recorder.act(recorded.END, chip.round, (0, 0), 0, b"")
        if chip.round == 0:
            continue  # a host may look at the chip first, in a session of its own
        if values["profile"]:
            table, page = f"{path}{_TABLE}", f"{path}{_PAGE}"
            _process(Path(table), "profile", "-q", str(path), "--html", page)
        if values["check"]:
            found = Path(f"{path}{_FOUND}")
            output.say(f"bhemu looks at the session: {found}", err=True)
            looks = _process(found, "check", "-q", "--tool", "order,init", str(path))
            if waits:
                looks.wait()
                output.say(found.read_text(errors="replace").rstrip(), err=True)


def _process(written: Path, *words: str) -> "subprocess.Popen[bytes]":
    """A command of bhemu, which outlives this process; its output goes to a file."""
    command = [sys.executable, "-P", "-m", "bhemu", *words]
    with written.open("wb") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )


def _names(chip: "Machine", values: dict[str, Any]) -> "Names":
    """Finds the ELFs of what the host runs on `chip`."""
    from bhemu.hosts.naming import of_environment

    return of_environment(chip, map(Path, values["elfs"]))


def _serve_library(fd: str, values: dict[str, Any]) -> int:
    """A session of the host whose library is at the other end of the socket `fd`."""
    from bhemu.hosts.library import LibrarySession, Line
    from bhemu.hosts.umd import end_soon

    line = Line(fd)
    line.watch(end_soon)
    progress = output.Progress(quiet=False)
    try:
        with progress.starting():
            from bhemu.hosts.shared import SharedChip

            options = _options(values, progress)
            count = values["chips"]
            chips = [SharedChip(number, count, **options) for number in range(count)]
            recorders = _recorders(values, options)
            for chip in chips:  # else each access of the host is a message
                chip.arena.head["plain"] = not recorders
    except Exception as problem:  # the host waits: whatever it is, it must hear of it
        return line.fail(output.show(problem, as_json=False))
    gc.freeze()  # what is there stays: no collection walks it again
    line.send_memory([one.arena.fd for one in chips])
    session = LibrarySession(line, chips, functools.partial(_failed, values))
    session.record(recorders)
    try:
        code = session.serve()
    except Exception as problem:
        code = line.fail(output.show(problem, as_json=False))
    if recorders:
        _end_record(recorders, chips, values, waits=code == EXIT_OK)
    if values["verbose"]:
        output.say(f"bhemu serve: {session}", err=True)
    sys.stderr.flush()
    os._exit(code)  # at once: the host waits for it


def _failed(values: dict[str, Any], chip: "Machine", error: BhemuError) -> int:
    """Tell the error that ends a session, with names and lines; its exit code."""
    where = error.where
    xy = where.tile if where is not None and isinstance(where.tile, tuple) else None
    names = _names(chip, values)
    names.look(xy, error)
    _save_stopped(chip, names, values["keep"], error, xy)
    return output.show(error, as_json=False)


def _save_stopped(
    chip: "Machine", names: "Names", path: str | None, error: BhemuError, xy: tuple[int, int] | None
) -> None:
    """Save the chip that has stopped or waits in vain; the error's hint says how to go on."""
    if isinstance(error, NoProgress):
        names.shorten(error)
    shown = "" if xy is None else f" --tile {xy[0]},{xy[1]}"
    go = f"bhemu step {path}{shown}"
    if path is None:
        go = (
            "with bhemu simulator FOLDER --keep STATE.npz the chip is kept for bhemu step STATE.npz"
        )
    else:
        chip.snapshot().save(path)
    error.hint = "; ".join(part for part in (error.hint, go) if part)


def _lost(connect: "Callable[[], Connection]", how: str) -> int:
    """A signal ended the serving process: the host must hear of it."""
    from bhemu.hosts.session import Session

    hint = "not enough memory? The host sees failed reads from now on"
    error = Internal(f"{how} ended the emulator", hint=hint)
    output.show(error, as_json=False)
    connection = connect()
    try:
        Session(connection, print).refuse()
    finally:
        connection.close()
    return error.exit_code


@click.command("simulator")
@click.argument("folder", type=FilePath(path_type=Path), metavar="FOLDER", required=False)
@click.option(
    "--library", is_flag=True, help="print only the path of libbhemu.so, in FOLDER or kept"
)
@serve_options
def simulator_command(folder: Path | None, library: bool, **values: Any) -> int:
    """Write a simulator FOLDER for programs of Tenstorrent.

    Hosts load libbhemu.so in place of a card. Those that want a folder find run.sh and
    soc_descriptor.yaml. The other options are those that `bhemu serve` gets from run.sh. Without
    FOLDER `--library` keeps one where compiled code is kept.
    """
    from bhemu.hosts import simulator
    from bhemu.jit.cache import root

    if folder is None and not library:
        raise InputError("simulator: which folder?", hint="bhemu simulator FOLDER, or --library")
    place = root() / "simulator" if folder is None else folder
    given = arguments(values)
    if (values["profile"] or values["check"]) and values["record"] is None:
        given += ["--record", str(place.resolve() / _LAST)]
    if library:
        simulator.write(place, given, root(), simulator.library(), chips=values["chips"])
        output.say(place.resolve() / simulator.LIBRARY)
        return EXIT_OK
    check_packages()
    at = shlex.quote(str(place.resolve()))
    try:
        found = simulator.library()
    except InputError as problem:
        simulator.write(place, given, root())
        output.say(f"without {simulator.LIBRARY}: {problem.message}", err=True)
        output.say(f"TT_METAL_SIMULATOR={at} TT_METAL_SLOW_DISPATCH_MODE=1 python program.py")
    else:
        simulator.write(place, given, root(), found, chips=values["chips"])
        put = shlex.quote(str(place.resolve() / simulator.LIBRARY))
        output.say(f"TT_METAL_SIMULATOR={put} python program.py")
    output.say(f"tt-exalens -s {at}")
    return EXIT_OK


_STAND_IN = Path(__file__).parent.parent / "llk" / "stand_in"


@click.command("llk")
@click.option("--path", is_flag=True, help="print only the folder to put on PYTHONPATH")
def llk_command(path: bool) -> None:
    """Show how to run tt-llk's tests on an emulated tile.

    The tests import tt-exalens to reach a device. With the printed folder first on PYTHONPATH they
    import a stand-in of the same name, which runs an emulated tile.
    """
    if path:
        click.echo(_STAND_IN)
        return
    click.echo(
        "cd tt-llk/tests/python_tests\n"
        "PYTHONPATH=$(bhemu llk --path) pytest test_matmul.py\n"
        "options of the tile: BHEMU_LLK=reference=ttsim,ub=warn,quantum=100 (docs/llk.md)\n"
        "a sample of all tests on all processors: scripts/llk_sweep.py of a checkout of bhemu"
    )


# `bhemu mcp`: the commands as tools of an MCP server, confined to a folder.
#
# A call of a tool runs the command with --json in a process of its own, which may crash, and is
# ended when its time is over; its document is the answer.

_MOST_SECONDS = 600.0
_MOST_BYTES = 4_000_000  # of an answer, which an agent reads
_SKILL = "bhemu://skill"
_ABOUT = (
    "bhemu emulates Tenstorrent Blackhole Tensix tiles. Each tool answers with one JSON document;"
    " its verdict is ok, kernel bug, race, not modelled, bad input or limit. Loop: build, run, why,"
    f" change the source, again. The resource {_SKILL} says more."
)


@click.command("mcp")
@click.argument("folder", default=".", type=FilePath(path_type=Path))
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
    from importlib import resources

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
