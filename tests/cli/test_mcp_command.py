"""`bhemu mcp`: a session of the library's own client; nothing outside of the folder; the skill."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import tutorial

ROOT = Path(__file__).parents[2]
pytest.importorskip("mcp", reason="the extra mcp is not installed")
import anyio  # noqa: E402
from mcp import ClientSession, StdioServerParameters, stdio_client  # noqa: E402

Ask = Callable[..., Coroutine[Any, Any, dict[str, Any]]]


def session(folder: Path, act: Callable[[ClientSession, Ask], Coroutine[Any, Any, None]]) -> None:
    """Run `act` with a client of `bhemu mcp folder`, and with what calls a tool of it."""

    async def run() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "bhemu", "mcp", str(folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()

            async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
                answer = await client.call_tool(tool, arguments)
                assert not answer.is_error, answer
                found = answer.structured_content
                assert json.loads(answer.content[0].text) == found
                return dict(found)

            await act(client, ask)

    anyio.run(run)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with two programs, and one outside of it beside it."""
    folder = tmp_path / "programs"
    for name in ("add1", "hang_cycle"):
        shutil.copytree(ROOT / "elfs" / name, folder / name)
    shutil.copytree(ROOT / "elfs/add1", tmp_path / "outside")
    return folder


def test_an_agent_runs_asks_looks_and_goes_on(programs: Path) -> None:
    async def act(client: ClientSession, ask: Ask) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {*tools} == {"run", "why", "profile", "explain", "read", "step", "build"}
        assert all(tool.description for tool in tools.values())
        skill = (await client.read_resource("bhemu://skill")).contents[0].text
        assert skill == (ROOT / "bhemu/data/SKILL.md").read_text()
        found = await ask("run", program="add1")
        assert (found["verdict"], found["exit_code"]) == ("ok", 0)
        assert found["outputs"][0]["equal"]
        found = await ask("why", program="hang_cycle")
        assert (found["verdict"], found["findings"][0]["check"]) == ("kernel bug", "waiting")
        assert found["findings"][0]["culprit"]["file"] == "cycle_math.c"
        found = await ask("why", program="add1", place="y[3,5]")
        assert found["links"]
        found = await ask("profile", program="add1")
        assert found["cycles"] > 0
        found = await ask("explain", names=["SEMWAIT", "CFG-IN-USE"])
        assert "SEMWAIT" in json.dumps(found["explained"])
        found = await ask("read", program="add1", names=["sem", "l1:0xC0000-0xC0010"])
        assert {*found["state"]} == {"sem", "l1"}
        at_main = ["break main trisc1", "continue"]
        found = await ask("step", program="add1", commands=at_main, save="at_main.npz")
        clock = found["clock"]
        found = await ask("step", program="at_main.npz", commands=["step 2 trisc1", "where"])
        assert found["clock"] >= clock > 0
        assert "math.c:23" in "\n".join(found["commands"][0]["lines"])
        found = await ask("build", folder="add1")
        assert found["verdict"] in ("ok", "bad input")  # as its sources are there or not
        found = await ask("run", program="missing")
        assert (found["verdict"], found["exit_code"]) == ("bad input", 2)

    session(programs, act)


def test_nothing_outside_of_the_folder_is_read_or_written(programs: Path) -> None:
    outside = programs.parent / "outside"
    (programs / "link").symlink_to(outside)
    for name in ("elf", "save", "toml"):
        shutil.copytree(programs / "add1", programs / name)
    (programs / "elf/brisc.elf").unlink()
    (programs / "elf/brisc.elf").symlink_to(outside / "brisc.elf")
    toml = programs / "save/PROGRAM.toml"
    toml.write_text(toml.read_text().replace("expect =", 'save = "../../stolen.npy"\nexpect ='))
    (programs / "toml/PROGRAM.toml").unlink()
    (programs / "toml/PROGRAM.toml").symlink_to(outside / "PROGRAM.toml")
    before = sorted(programs.parent.iterdir())

    async def act(client: ClientSession, ask: Ask) -> None:
        for tool in ("run", "why", "profile"):
            for name in ("../outside", str(outside), "link", "toml/PROGRAM.toml"):
                found = await ask(tool, program=name)
                assert (found["verdict"], found["exit_code"]) == ("bad input", 2)
                assert f"{name} lies outside of {programs}" in found["message"]
        found = await ask("run", program="toml")
        assert (found["verdict"], "lies outside" in found["message"]) == ("bad input", True)
        for name, file in (("elf", "brisc.elf"), ("save", "stolen.npy")):
            found = await ask("run", program=name)
            assert found["verdict"] == "bad input"
            assert file in found["message"]
        state = outside / "state.npz"
        found = await ask("step", program="add1", commands=["where"], save=str(state))
        assert f"{state} lies outside" in found["message"]
        for command in (f"save {state}", f"load {outside / 'in.npy'}", "save ../state.npz"):
            found = await ask("step", program="add1", commands=[command])
            assert (found["verdict"], "lies outside" in found["message"]) == ("bad input", True)
        found = await ask("explain", names=["../outside/trisc1.elf"])
        assert "lies outside" in found["message"]
        found = await ask("build", folder="../outside")
        assert "lies outside" in found["message"]
        # What begins like an option is a name.
        found = await ask("run", program="--allow-outside")
        assert found["verdict"] == "bad input"

    session(programs, act)
    assert sorted(programs.parent.iterdir()) == before
    assert not (outside / "state.npz").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('flags = ["-MF../made"]', "-MF../made is not allowed"),
        ('flags = ["-fplugin=x"]', "-fplugin=x is not allowed"),
        ('flags = ["@options"]', "@options is not allowed"),
        ('include = ["/usr/include"]', "/usr/include leaves"),
    ],
)
def test_a_build_takes_no_flags_that_lead_out(tmp_path: Path, line: str, said: str) -> None:
    pytest.importorskip("ziglang", reason="the extra build is not installed")
    command = [sys.executable, "-m", "bhemu"]
    subprocess.run([*command, "new", "relu", "--kernel"], cwd=tmp_path, check=True)
    toml = tmp_path / "relu/PROGRAM.toml"
    key = line.partition(" ")[0]
    text, count = re.subn(rf"^{key} = .*$", line, toml.read_text(), flags=re.MULTILINE)
    assert count == 1
    toml.write_text(text)

    async def act(client: ClientSession, ask: Ask) -> None:
        found = await ask("build", folder="relu")
        assert found["verdict"] == "bad input"
        assert said in found["message"]

    session(tmp_path, act)


def test_a_call_that_takes_too_long_is_ended(programs: Path) -> None:
    async def act(client: ClientSession, ask: Ask) -> None:
        found = await ask("run", program="hang_timeout", limit=1 << 40, seconds=3)
        assert (found["verdict"], found["category"]) == ("limit", "Timeout")
        assert "more than 3 s" in found["message"]
        assert (await ask("run", program="add1"))["verdict"] == "ok"

    shutil.copytree(ROOT / "elfs/hang_timeout", programs / "hang_timeout")
    text = (programs / "hang_timeout/PROGRAM.toml").read_text()
    (programs / "hang_timeout/PROGRAM.toml").write_text(f"{text}livelock = 0\n")
    session(programs, act)


def test_without_the_library_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp/__init__.py").write_text("raise ModuleNotFoundError('no mcp here')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "mcp"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: pip install 'bhemu[mcp]'" in done.stderr


def test_what_the_skill_says_runs(tmp_path: Path, bhemu) -> None:
    pytest.importorskip("ziglang", reason="the extra build is not installed")
    printed = bhemu("mcp", "--skill").stdout
    assert printed == (ROOT / "bhemu/data/SKILL.md").read_text()
    assert printed.startswith("---\nname: bhemu\ndescription: ")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bhemu").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bhemu "$@"\n')
    (tmp_path / "bin/bhemu").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    count = tutorial.run(ROOT / "bhemu/data/SKILL.md", tmp_path, environment)
    assert count == printed.count("```sh") == 5
