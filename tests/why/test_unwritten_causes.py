"""Who leaves words unwritten or writes them too late; constants that are no numbers."""

from pathlib import Path

from corpus import Line, check_bug, folder, found, store, unordered

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    T0,
    T1,
    T2,
    ZERO,
    add,
    addi,
    beq,
    bne,
    branch,
    li,
    lw,
    sw,
)
from bhemu.riscv.isa.rv32i import SUB

DATA, COUNT, OUT = 0x20000, 0x20100, 0x20200
FENCE, BLTU = 0x0FF0000F, 6
RESET_PC, OVERRIDE, RESET, TRISC0 = 0xFFB12228, 0xFFB12234, 0xFFB121B0, 0x1000
RELEASE: list[Line] = [
    store(RESET_PC, 0x10000),
    store(OVERRIDE, 7),
    [*li(A0, RESET), lw(A1, A0), *li(A2, TRISC0), SUB.assemble(A1, A1, A2), sw(A1, A0)],
]
POLL = [*li(A0, COUNT), *li(A1, 1), lw(T1, A0), FENCE, branch(BLTU, T1, A1, -8)]


def released(path: Path, brisc: list[Line], *, given: bool = False) -> Path:
    """BRISC lets trisc0 start, which waits for COUNT and stores OUT; given: the host writes it."""
    kernels: dict[str, list[Line]] = {"brisc": brisc, "trisc0": [POLL, store(OUT, 1)]}
    folder(path, kernels, inputs={COUNT: [0]} if given else {}, outputs={OUT: [1]})
    toml = path / "PROGRAM.toml"
    plain = 'trisc0 = { elf = "trisc0.elf" }'
    assert plain in toml.read_text()
    toml.write_text(toml.read_text().replace(plain, plain[:-2] + ", release = false }"))
    return path


def test_a_word_that_gets_its_first_value_behind_the_release_of_its_poller(tmp_path: Path) -> None:
    """Whatever lies there may let the poller go on, although here the store wins."""
    late: list[Line] = [*RELEASE, store(COUNT, 0), store(COUNT, 1)]
    early: list[Line] = [store(COUNT, 0), *RELEASE, store(COUNT, 1)]
    bad = released(tmp_path / "bad", late)
    check_bug(bad, released(tmp_path / "twin", early), "races", "brisc", 4)
    assert "only behind the release of trisc0" in unordered(bad)[0]["text"]


def test_a_word_that_the_host_has_written_is_not_late(tmp_path: Path) -> None:
    late: list[Line] = [*RELEASE, store(COUNT, 0), store(COUNT, 1)]
    assert found(released(tmp_path / "given", late, given=True)) == []


def filling(words: int, but: int) -> list[Line]:
    """Stores to `words` words of DATA but one, line by line of its loop."""
    begin = [*li(A0, DATA), *li(A1, words), addi(A2, ZERO, 0), *li(T2, 7), *li(T0, but)]
    return [begin, [beq(A2, T0, 8)], [sw(T2, A0)], [addi(A0, A0, 4), addi(A2, A2, 1)],
            [bne(A2, A1, -16)]]  # fmt: skip


def summing(words: int) -> list[Line]:
    begin = [*li(A0, DATA), *li(A1, DATA + 4 * words), addi(T1, ZERO, 0)]
    loop = [lw(A2, A0), add(T1, T1, A2), addi(A0, A0, 4), bne(A0, A1, -12)]
    return [begin, loop, [*li(A0, OUT), sw(T1, A0)]]


def test_the_branch_that_leads_past_a_store_is_named(tmp_path: Path) -> None:
    """The line that leaves one word out, and not that of the store."""
    away: list[Line] = [addi(ZERO, ZERO, 0)] * 4
    paths = []
    for kind, but in (("bad", 5), ("twin", 99)):
        lines = filling(12, but)
        lines[2:2] = away  # so that branch and store are apart
        lines[1] = [beq(A2, T0, 8 + 4 * len(away))]
        lines[-1] = [bne(A2, A1, -16 - 4 * len(away))]
        outputs = {OUT: [7 * (12 - (but < 12))]}
        paths.append(folder(tmp_path / kind, {"trisc0": [*lines, *summing(12)]}, outputs=outputs))
    check_bug(*paths, "unwritten", "trisc0", 2)
    assert "a branch leads past that store" in " ".join(found(paths[0])[0]["evidence"])
