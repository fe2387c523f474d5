"""What a caller may get wrong: each mistake is an InputError that names it, and nothing changes."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bhemu import (
    BhemuError,
    InputError,
    Machine,
    Program,
    Snapshot,
    Tile,
    UnknownName,
    load_elf,
    sweep,
)
from bhemu.riscv.assembly import A0, PARK, addi, jal

OPTIONS = [
    ({"xy": "ab"}, "xy = 'ab' must be a NoC coordinate"),
    ({"xy": (1,)}, "xy = (1,) must be"),
    ({"xy": (1, 64)}, "xy = (1, 64) must be"),
    ({"xy": 3}, "xy = 3 must be"),
    ({"seed": -1}, "seed = -1 must be an integer of 0 or more"),
    ({"seed": "x"}, "seed = 'x' must be"),
    ({"seed": True}, "seed = True must be"),
    ({"quantum": 0}, "quantum = 0 must be an integer of 1 to"),
    ({"quantum": 1.5}, "quantum = 1.5 must be"),
    ({"quantum": 1 << 70}, "quantum = "),
    ({"ub": "warm"}, "ub = 'warm' is not known"),
    ({"ub": ["error"]}, "ub = ['error'] is not known"),
    ({"poison": "ones"}, "poison = 'ones' is not known"),
    ({"reference": None}, "reference = None is not known"),
    ({"engine": "qemu"}, "engine = 'qemu' is not known"),
    ({"late": np.zeros(3)}, "late = array([0., 0., 0.]) is not known"),
    ({"timing": np.zeros(3)}, "timing = array([0., 0., 0.]) is not known"),
    ({"livelock": -1}, "livelock = -1 must be"),
    ({"progress": 5}, "progress = 5 must be callable"),
]
CALLS: list[tuple[str, Callable[[Tile], Any], str]] = [
    ("until-1", lambda t: t.run([(1,)]), "until condition (1,): wants (address, value)"),
    ("until-text", lambda t: t.run("done"), 'only "idle"'),
    ("until-pair", lambda t: t.run([0x100, 1]), "until condition 256"),
    ("until-int", lambda t: t.run(5), "until = 5 is no end condition"),
    ("until-dict", lambda t: t.run({"word": 4, "equals": 1}), "only"),
    ("until-keys", lambda t: t.run([{"word": 4}]), "wants the keys word and equals"),
    ("until-odd", lambda t: t.run([(0x101, 1)]), "is not an aligned word of L1"),
    ("until-far", lambda t: t.run([(1 << 40, 1)]), "is not an aligned word of L1"),
    ("until-negative", lambda t: t.run([(-4, 1)]), "is not an aligned word of L1"),
    ("until-value", lambda t: t.run([(0x100, 1 << 32)]), "does not fit 32 bits"),
    ("until-float", lambda t: t.run([(0x100, 1.5)]), "until value = 1.5 must be"),
    ("until-name", lambda t: t.run([("nowhere", 1)]), "no symbol or register nowhere"),
    ("until-array", lambda t: t.run(np.zeros(3)), "until condition np.float64(0.0)"),
    ("until-many", lambda t: t.run([(4 * i, 1) for i in range(17)]), "at most 16"),
    ("limit", lambda t: t.run(limit=-5), "limit = -5 must be an integer of 0 or more"),
    ("limit-text", lambda t: t.run(limit="9"), "limit = '9' must be"),
    ("timeout", lambda t: t.run(timeout_s=-1), "timeout_s = -1 must be a finite number"),
    ("timeout-nan", lambda t: t.run(timeout_s=float("nan")), "timeout_s = nan must be"),
    ("timeout-text", lambda t: t.run(timeout_s="5"), "timeout_s = '5' must be"),
    ("step-core", lambda t: t.step("trisc9"), "no core 'trisc9'"),
    ("step-number", lambda t: t.step(0), "no core 0"),
    ("step-n", lambda t: t.step("trisc0", -1), "n = -1 must be"),
    ("step-hold", lambda t: t.step("trisc0", hold="yes"), "hold = 'yes' must be True or False"),
    ("step-reset", lambda t: t.step("brisc"), "brisc is in reset"),
    ("next-reset", lambda t: t.next("brisc"), "brisc is in reset"),
    ("finish", lambda t: t.finish("trisc0"), "lies in no known function"),
    ("run-to", lambda t: t.run_to("trisc0", "nowhere"), "no symbol or register nowhere"),
    ("run-to-negative", lambda t: t.run_to("trisc0", -4), "-0x4 is no code address"),
    ("run-to-far", lambda t: t.run_to("trisc0", 1 << 40), "is no code address"),
    ("tstep", lambda t: t.tstep(3), "there is no Tensix thread 3 (0, 1, 2)"),
    ("tstep-text", lambda t: t.tstep("T1"), "there is no Tensix thread 'T1'"),
    ("tstep-n", lambda t: t.tstep(0, 0.5), "n = 0.5 must be"),
    ("tnext", lambda t: t.tnext(None), "there is no Tensix thread None"),
    ("break-core", lambda t: t.break_at("main", "trisc0"), "no core 'main'"),
    ("break-odd", lambda t: t.break_at("trisc0", 0x10002), "is no code address"),
    ("break-far", lambda t: t.break_at("trisc0", 1 << 40), "is no code address"),
    ("break-none", lambda t: t.break_at("trisc0", None), "address = None must be"),
    ("break-line", lambda t: t.break_at("trisc0", "a.c:1"), "trisc0 has no code from a.c"),
    ("break-word", lambda t: t.break_word([]), "no Tensix instruction []"),
    ("break-word-field", lambda t: t.break_word("PACR", 2, last="x"), "last = 'x' must be"),
    ("watch-float", lambda t: t.watch(1.5), "place = 1.5 must be"),
    ("watch-none", lambda t: t.watch(None), "place = None must be"),
    ("history-core", lambda t: t.keep_history().reverse_step(1), "no core 1"),
    ("history-thread", lambda t: t.keep_history().reverse_tstep("T0"), "no Tensix thread 'T0'"),
    ("delete", lambda t: t.delete(7), "no breakpoint 7"),
    ("delete-text", lambda t: t.delete("1"), "n = '1' must be"),
    ("trace", lambda t: t.trace(0), "limit = 0 must be an integer of 1 or more"),
    ("read", lambda t: t.read(-1, 4), "is outside L1"),
    ("read-far", lambda t: t.read(0x180000, 1), "is outside L1"),
    ("read-huge", lambda t: t.read(0, 1 << 80), "is outside L1"),
    ("read-n", lambda t: t.read(0, "4"), "n = '4' must be"),
    ("read-float", lambda t: t.read(1.0, 4), "address = 1.0 must be"),
    ("read-bytes", lambda t: t.read(b"main", 4), "address = b'main' must be"),
    ("write", lambda t: t.write(0x17FFFF, b"ab"), "is outside L1"),
    ("write-text", lambda t: t.write(0, "ab"), "write takes bytes, not str"),
    ("write-int", lambda t: t.write(0, 5), "write takes bytes, not int"),
    ("read32", lambda t: t.read32(0x17FFFE), "is outside L1"),
    ("read32-negative", lambda t: t.read32(-4), "is no address the host can reach"),
    ("read32-huge", lambda t: t.read32(1 << 64), "address = "),
    ("read32-local", lambda t: t.read32(0xFFB00000), "is no address the host can reach"),
    ("read32-unmapped", lambda t: t.read32(0xFFD00000), "the host cannot read 0xffd00000"),
    ("read32-name", lambda t: t.read32("WALL_CLOCK_X"), "no symbol or register WALL_CLOCK_X"),
    ("read32-text", lambda t: t.read32("5 + 5"), "'5 + 5' is not an address"),
    ("write32", lambda t: t.write32(0, 1 << 32), "value 0x100000000 does not fit 32 bits"),
    ("write32-negative", lambda t: t.write32(0, -1), "does not fit 32 bits"),
    ("write32-float", lambda t: t.write32(0, 1.0), "value = 1.0 must be"),
    ("tensor-shape", lambda t: t.tensor(0, "ab", "bf16"), "shape = 'ab' is no shape"),
    ("tensor-int", lambda t: t.tensor(0, 32, "bf16"), "shape = 32 is no shape"),
    ("tensor-zero", lambda t: t.tensor(0, (0, 32), "bf16"), "shape = (0, 32) is no shape"),
    ("tensor-dtype", lambda t: t.tensor(0, (32, 32), "float"), "no dtype 'float'"),
    ("tensor-layout", lambda t: t.tensor(0, (32, 32), "bf16", "tiles"), "no layout 'tiles'"),
    ("tensor-end", lambda t: t.tensor(0x17FFF0, (32, 32), "bf16"), "is outside L1"),
    ("put-text", lambda t: t.put_tensor(0, "ab", "bf16"), ""),
    ("put-ragged", lambda t: t.put_tensor(0, [[1, 2], [3]], "bf16"), "these values are no array"),
    ("put-array", lambda t: t.put_tensor(0, [[1.0]], np.zeros(3)), "no dtype array"),
    ("put-layout", lambda t: t.put_tensor(0, [[1.0]], "bf16", np.zeros(3)), "no layout array"),
    ("put-dtype", lambda t: t.put_tensor(0, np.zeros((32, 32)), "f32"), "no dtype 'f32'"),
    ("core", lambda t: t.core["trisc3"], "no core 'trisc3'"),
    ("core-index", lambda t: t.core[1], "no core 1"),
    ("core-read", lambda t: t.core["brisc"].read32(2), "0x2 is not aligned"),
    ("core-far", lambda t: t.core["brisc"].read32(1 << 40), "does not fit 32 bits"),
    ("core-write", lambda t: t.core["brisc"].write32(0, -1), "does not fit 32 bits"),
    ("core-pc", lambda t: t.core["trisc1"].set_reset_pc("x"), "pc = 'x' must be"),
    ("elf-missing", lambda t: t.core["brisc"].load_elf("none.elf"), "none.elf: no such file"),
    ("elf-type", lambda t: t.core["brisc"].load_elf(5), "5 is no path"),
    ("load-elf", lambda t: load_elf(None), "None is no path"),
    ("program", lambda t: Program.load("none.toml"), "none.toml: no such file"),
    ("program-type", lambda t: Program.load(5), "5 is no path"),
    ("dst", lambda t: t.tensix.dst("float"), "Dst has no decoded form 'float'"),
    ("field", lambda t: t.tensix.cfg_field("Fp32"), "no configuration field 'Fp32'"),
    ("field-type", lambda t: t.tensix.cfg_field(3), "no configuration field 3"),
    ("restore", lambda t: t.restore("x.npz"), "'x.npz' is no snapshot"),
    ("load", lambda t: Snapshot.load("none.npz"), "none.npz: cannot be read"),
    ("load-type", lambda t: Snapshot.load(5), "5 is no path"),
    ("save", lambda t: t.snapshot().save("no/folder/x.npz"), "cannot be written"),
    ("check", lambda t: Tile().check(), "no program was launched"),
    ("copy", copy.copy, "a tile cannot be copied or pickled"),
    ("deepcopy", copy.deepcopy, "a tile cannot be copied or pickled"),
    ("pickle", pickle.dumps, "a tile cannot be copied or pickled"),
    ("resume", lambda t: t.run(resume=3), "resume = 3 must be True or False"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=str)
def test_a_wrong_option_is_named(options, message) -> None:
    with pytest.raises(InputError) as caught:
        Tile(**options)
    assert message in caught.value.message


@pytest.mark.parametrize(("call", "message"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_wrong_call_is_named_and_changes_nothing(tile, call, message) -> None:
    mine = tile(*[addi(A0, A0, 1)] * 8, PARK)
    before = mine.state.l1.copy(), mine.clock
    with pytest.raises(InputError) as caught:
        call(mine)
    assert message in caught.value.message
    assert np.array_equal(mine.state.l1, before[0])
    assert mine.clock == before[1]
    assert mine.run().reason == "idle"
    assert mine.core["trisc0"].retired == 8


def test_what_is_not_several_is_named() -> None:
    with pytest.raises(InputError, match="tiles = 5 must name tiles"):
        Machine(tiles=5)
    with pytest.raises(InputError, match="5 is no path"):
        sweep(5)


def test_an_address_is_watched(tile) -> None:
    mine = tile(*[addi(A0, A0, 1)] * 8, PARK)
    mine.watch(0x20000)
    assert mine.watchpoints[0].text == "0x20000"


@pytest.mark.parametrize("value", [np.int64(4), np.uint32(4), np.int8(4)])
def test_numpy_integers_are_integers(tile, value) -> None:
    one = np.int64(1)
    mine = tile(*[addi(A0, A0, 1)] * 8, PARK)
    mine.write32(value, np.uint32(0xFFFFFFFF))
    assert mine.read32(value) == 0xFFFFFFFF == mine.core["brisc"].read32(value)
    assert mine.read(value, value) == b"\xff" * 4
    mine.delete(np.int64(mine.break_at("trisc0", np.int64(0x10004))))
    assert mine.step("trisc0", one).reason == "step"
    assert mine.run([(value, np.uint32(0xFFFFFFFF))], limit=np.int64(50)).reason == "until"
    assert mine.tensor(value, np.array([2, 2]), "fp32", "rows").shape == (2, 2)
    assert Tile(seed=one, quantum=one, xy=(one, value)).xy == (1, 4)


@pytest.mark.parametrize(
    "data", [b"ab", bytearray(b"ab"), memoryview(b"ab"), np.array([97, 98], np.uint8)]
)
def test_bytes_of_any_kind_are_written(data) -> None:
    tile = Tile()
    tile.write(0x100, data)
    assert tile.read(0x100, 2) == b"ab"


def test_unknown_names_are_key_errors_too() -> None:
    tile = Tile()
    with pytest.raises(KeyError, match="did you mean trisc2"):
        tile.core["trisc3"]
    assert "trisc3" not in tile.core
    assert tile.core.get("trisc3") is None
    with pytest.raises(UnknownName, match="did you mean TRISC0_RESET_PC"):
        tile.write32("TRISC0_RESETPC", 0)
    with pytest.raises(AttributeError, match="did you mean gpr"):
        print(tile.tensix.gprs)
    with pytest.raises(AttributeError, match="write into it"):
        tile.tensix.gpr = 5


def elsewhere(call: Callable[[], Any]) -> BaseException | None:
    caught: list[BaseException | None] = []

    def work() -> None:
        try:
            call()
        except BaseException as problem:
            caught.append(problem)
        else:
            caught.append(None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return caught[0]


USES = {
    "run": lambda t: t.run(),
    "step": lambda t: t.step("trisc0"),
    "tstep": lambda t: t.tstep(0),
    "read": lambda t: t.read(0, 4),
    "write32": lambda t: t.write32("SOFT_RESET_0", 0),
    "read32": lambda t: t.read32("SOFT_RESET_0"),
    "reset": lambda t: t.reset(),
    "regs": lambda t: t.core["trisc0"].regs,
    "core": lambda t: t.core["trisc0"].write32(0xFFB00000, 1),
    "release": lambda t: t.core["brisc"].release(),
    "break_at": lambda t: t.break_at("trisc0", 0x10000),
    "snapshot": lambda t: t.snapshot(),
    "trace": lambda t: t.trace(),
}


@pytest.mark.parametrize("name", USES)
def test_a_tile_belongs_to_the_thread_that_made_it(tile, name) -> None:
    mine = tile(addi(A0, A0, 1), PARK)
    problem = elsewhere(lambda: USES[name](mine))
    assert isinstance(problem, InputError)
    assert problem.message == "a tile belongs to the thread that made it"
    assert mine.run().reason == "idle"


def test_another_thread_may_have_a_tile_of_its_own() -> None:
    assert elsewhere(lambda: Tile().run()) is None


@pytest.mark.parametrize(
    "call", [lambda t: t.run(), lambda t: t.step("trisc0"), lambda t: t.reset()]
)
def test_until_may_look_but_not_run(tile, call) -> None:
    mine = tile(addi(A0, A0, 1), jal(0, -4))
    with pytest.raises(InputError, match="was called during a run"):
        mine.run(lambda t: call(t))
    assert mine.error is None, "a mistake in `until` is none of the program"
    assert mine.run(lambda t: t.snapshot().clock[0] > 3000 and t.read32(0) == 0).reason == "until"


def test_every_error_of_a_program_is_a_bhemu_error(tile) -> None:
    mine = tile(0xFFFFFFFF)
    for _ in range(2):
        with pytest.raises(BhemuError) as caught:
            mine.run()
    assert mine.error.as_dict() == caught.value.as_dict()
    assert "stopped by GuestFault" in repr(mine)
