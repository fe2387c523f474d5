"""PROGRAM.toml: every key, every default, and every way to get it wrong (interface chapter)."""

import struct
from pathlib import Path

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.program.coordinates import check_l1, resolve_at
from bhemu.program.schema import CoreSpec, RunSpec, Until, load_program
from bhemu.program.tensor import encode

HEAD = 'bhemu = 1\nkind = "elf"\n[cores]\ntrisc0 = { elf = "k.elf" }\n'
IMAGE = 'bhemu = 1\nkind = "image"\n[cores]\ntrisc0 = { pc = 0x10000 }\n'
INPUT = '[[input]]\nat = 0x50000\nfile = "a.npy"\ndtype = "bf16"\n'
OUTPUT = '[[output]]\nat = 0x70000\ndtype = "bf16"\n'
SHAPED = OUTPUT + "shape = [64, 64]\n"
FULL = """\
bhemu = 1
name = "matmul"
kind = "elf"
[cores]
brisc  = { elf = "k.elf", local = 0x82B0 }
trisc0 = { elf = "k.elf", release = false, pc = 0x6000 }
[[set]]
at = "runtime_args"
core = "trisc0"
values = ["u32:4", "f32:1.0"]
[[input]]
at = 0x50000
file = "a.npy"
dtype = "bf16"
layout = "tile32"
shape = [64, 96]
convert = "nearest"
[[output]]
name = "c"
at = "result + 0x10"
dtype = "bf16"
layout = "tile32"
shape = [64, 64]
save = "c.npy"
expect = "want.npy"
compare = "ulp"
max_ulp = 2
[run]
until = [{ word = 0x100, equals = 0xD0E0 }, { word = "done", equals = 1 }]
limit = 50_000_000
timeout_s = 60
livelock = 100
seed = 3
ub = "silicon"
poison = "random"
reference = "llk"
stochastic = 7
l0 = "model"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with an ELF (never opened here), inputs and expected outputs."""
    monkeypatch.chdir(tmp_path)
    Path("k.elf").write_bytes(b"\x7fELF")
    np.save("a.npy", np.linspace(0, 1, 64 * 96, dtype=np.float32).reshape(64, 96))
    np.save("want.npy", np.ones((64, 64), np.float32))
    Path("bytes.bin").write_bytes(b"\1\2\3")
    np.savez("l1.npz", in_addr=[0x100, 0x200], in_len=[2, 1], in_data=np.array([5, 6, 7], "u1"))
    return tmp_path


def load(text):
    Path("PROGRAM.toml").write_text(text)
    return load_program("PROGRAM.toml")


def refusal(text):
    with pytest.raises(InputError) as caught:
        load(text)
    assert caught.value.message.startswith("PROGRAM.toml: ")
    return str(caught.value).removeprefix("PROGRAM.toml: ")


# A whole program.


def test_every_key_of_the_schema():
    program = load(FULL)
    assert (program.name, program.kind, program.image) == ("matmul", "elf", None)
    assert program.cores == {
        "brisc": CoreSpec("brisc", Path("k.elf"), 0x82B0),
        "trisc0": CoreSpec("trisc0", Path("k.elf"), "direct", False, 0x6000),
    }
    (args,) = program.sets
    assert (args.at, args.core, args.data) == ("runtime_args", "trisc0", struct.pack("<If", 4, 1.0))
    (a,) = program.inputs
    assert (a.at, a.file, a.dtype, a.layout) == (0x50000, Path("a.npy"), "bf16", "tile32")
    assert (a.shape, a.convert, a.size) == ((64, 96), "nearest", 64 * 96 * 2)
    assert a.data() == encode(np.load("a.npy"), "bf16", "tile32", "nearest")
    (c,) = program.outputs
    assert (c.name, c.at, c.shape, c.size) == ("c", "result + 0x10", (64, 64), 8192)
    assert (c.save, c.expect) == (Path("c.npy"), Path("want.npy"))
    assert (c.compare, c.max_ulp) == ("ulp", 2)
    assert program.run == RunSpec(
        until=(Until(0x100, 0xD0E0), Until("done", 1)),
        limit=50_000_000,
        timeout_s=60.0,
        options={
            "livelock": 100,
            "seed": 3,
            "ub": "silicon",
            "poison": "random",
            "reference": "llk",
            "stochastic": 7,
            "l0": "model",
        },
    )


def test_defaults(folder):
    program = load(HEAD + INPUT + OUTPUT + 'expect = "want.npy"\n')
    assert program.name == folder.name
    assert program.cores["trisc0"] == CoreSpec("trisc0", Path("k.elf"), "direct", True, None)
    assert program.run == RunSpec()
    assert program.run.until == ()
    (a,), (c,) = program.inputs, program.outputs
    assert (a.layout, a.shape, a.convert) == ("tile32", (64, 96), "exact")
    assert (c.name, c.shape, c.compare, c.save) == ("want", (64, 64), "bits", None)


def test_paths_start_from_the_file_and_a_folder_stands_for_its_program(folder, monkeypatch):
    load(FULL)
    monkeypatch.chdir("/")
    program = load_program(folder)
    assert program.path == folder / "PROGRAM.toml"
    assert program.inputs[0].file == folder / "a.npy"
    assert program.outputs[0].save == folder / "c.npy"


def test_checking_an_output():
    plain, expected = load(HEAD + SHAPED + SHAPED + 'expect = "want.npy"\nname = "c"\n').outputs
    data = encode(np.ones((64, 64)), "bf16")
    assert plain.check(data) is None
    assert expected.check(data).equal
    report = expected.check(b"\0" + b"\1" + data[2:])
    assert (report.name, report.differing, report.first.index) == ("c", 1, (0, 0))


def test_tolerances_reach_the_comparison():
    close = OUTPUT + 'expect = "want.npy"\ncompare = "close"\nrtol = 0\natol = '
    tight, loose = load(HEAD + close + "0.5\n" + close + "1\n").outputs
    data = encode(np.zeros((64, 64)), "bf16")
    assert tight.check(data).differing == 4096
    assert loose.check(data).equal


def test_bytes_as_they_are():
    raw = '[[input]]\nat = 0\nfile = "{}"\ndtype = "raw"\n'
    (a, b) = load(HEAD + raw.format("bytes.bin") + raw.format("want.npy")).inputs
    assert (a.layout, a.shape, a.data()) == ("raw", (3,), b"\1\2\3")
    assert (b.size, b.data()) == (4 * 64 * 64, np.ones(64 * 64, "<f4").tobytes())


def test_an_inexact_input_is_named_with_its_place():
    (a,) = load(HEAD + INPUT).inputs
    with pytest.raises(
        InputError, match=r"PROGRAM\.toml: \[\[input\]\] 1: element \[0, 1\] = .*exact"
    ):
        a.data()


# What can be wrong.


def test_files_that_are_no_program():
    with pytest.raises(InputError, match=r"no\.toml: no such file"):
        load_program("no.toml")
    assert refusal("bhemu = ").startswith("not TOML: ")
    Path("PROGRAM.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(InputError, match="not TOML"):
        load_program("PROGRAM.toml")
    begins = "begin with bhemu = 1, the version of the schema"
    assert refusal("") == f"missing key bhemu\nhint: {begins}"
    assert refusal("bhemu = 2\n") == "bhemu = 2\nhint: this is schema version 1"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (HEAD + "[run]\nlimt = 3\n", "[run]: unknown key limt\nhint: did you mean limit? allowed:"),
        ("bhemu = 1\nnmae = 'x'\n" + HEAD[10:], "unknown key nmae\nhint: did you mean name?"),
        (HEAD + INPUT + "shap = [1]\n", "[[input]] 1: unknown key shap\nhint: did you mean shape?"),
        (HEAD + SHAPED + SHAPED + "x = 1\n", "[[output]] 2: unknown key x\nhint: allowed: at,"),
        (
            HEAD + "[[set]]\nat = 0\nvalues = ['u8:1']\nvalue = 1\n",
            "[[set]] 1: unknown key value\n",
        ),
        (HEAD + "trisc3 = {}\n", "[cores]: unknown key trisc3\nhint: did you mean trisc"),
        (HEAD + "brisc = { file = 'k.elf', pc = 0 }\n", "[cores]: [brisc]: unknown key file"),
        (
            HEAD + "[run]\nuntil = [{ word = 0, equal = 1, equals = 1 }]\n",
            "[run]: [[until]] 1: unknown",
        ),
        (IMAGE + "[image]\nfile = 'l1.npz'\nat = 0\n", "[image]: unknown key at"),
    ],
)
def test_unknown_keys_are_answered_with_the_nearest(text, answer):
    assert refusal(text).startswith(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("bhemu = '1'\n", "bhemu must be an integer, not a string"),
        ("bhemu = true\n", "bhemu must be an integer, not true or false"),
        (HEAD + "[run]\nlimit = 1.5\n", "[run]: limit must be an integer, not a number"),
        (HEAD + "[run]\ntimeout_s = '1'\n", "[run]: timeout_s must be an integer or a number"),
        (HEAD + "[run]\nuntil = 3\n", "[run]: until must be a string or an array, not an integer"),
        (HEAD + "[run]\nuntil = [3]\n", "[run]: until must be an array of tables"),
        (HEAD + "[input]\nat = 0\n", "input must be an array, not a table"),
        (HEAD + "brisc = 'k.elf'\n", "[cores]: brisc must be a table, not a string"),
        (HEAD + "brisc = { elf = 1 }\n", "[cores]: [brisc]: elf must be a string"),
        (
            HEAD + "brisc = { elf = 'k.elf', release = 0 }\n",
            "[cores]: [brisc]: release must be true",
        ),
        (
            HEAD + "brisc = { elf = 'k.elf', local = 1.0 }\n",
            "[cores]: [brisc]: local must be a string",
        ),
        (HEAD + "[[set]]\nat = 1.0\nvalues = []\n", "[[set]] 1: at must be an integer or a string"),
        (HEAD + "[[set]]\nat = 1\nvalues = 'u8:1'\n", "[[set]] 1: values must be an array"),
        ("bhemu = 1\nname = 1979-05-27\n" + HEAD[10:], "name must be a string, not a date"),
    ],
)
def test_wrong_types(text, answer):
    assert refusal(text).startswith(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('bhemu = 1\nkind = "efl"\n', 'kind = "efl"\nhint: did you mean elf?'),
        (
            HEAD + "brisc = { elf = 'k.elf', local = 'loader' }\n",
            '[cores]: [brisc]: local = "loader"',
        ),
        (
            HEAD + "brisc = { elf = 'k.elf', local = 0x180000 }\n",
            "[cores]: [brisc]: local = 0x180000",
        ),
        (HEAD + "brisc = { pc = 0x180000 }\n", "[cores]: [brisc]: pc = 1572864 is not within"),
        (HEAD + "brisc = {}\n", "[cores]: [brisc]: neither elf nor pc"),
        (HEAD + "[run]\nlimit = 0\n", "[run]: limit = 0 is not within"),
        (HEAD + "[run]\ntimeout_s = nan\n", "[run]: timeout_s = nan is not a finite number"),
        (HEAD + "[run]\nub = 'ignore'\n", '[run]: ub = "ignore"\nhint: allowed: error, warn'),
        (HEAD + "[run]\npoison = 'of'\n", '[run]: poison = "of"\nhint: did you mean off?'),
        (HEAD + "[run]\nreference = 'x'\n", '[run]: reference = "x"'),
        (HEAD + "[run]\nstochastic = 'UP'\n", '[run]: stochastic = "UP"\nhint: allowed: off, up'),
        (HEAD + "[run]\nstochastic = -1\n", "[run]: stochastic = -1 is not within"),
        (HEAD + "[run]\nuntil = 'idel'\n", '[run]: until = "idel"\nhint: "idle", or'),
        (
            HEAD + "[run]\nuntil = [{ word = 2, equals = 1 }]\n",
            "[run]: [[until]] 1: word = 0x2 is not",
        ),
        (
            HEAD + "[run]\nuntil = [{ word = 0x180000, equals = 1 }]\n",
            "[run]: [[until]] 1: word = 0x18",
        ),
        (HEAD + "[run]\nuntil = [{ word = 0, equals = -1 }]\n", "[run]: [[until]] 1: equals = -1"),
        (
            HEAD + INPUT + "layout = 'tiles'\n",
            '[[input]] 1: layout = "tiles"\nhint: did you mean tile32?',
        ),
        (HEAD + INPUT + "convert = 'round'\n", '[[input]] 1: convert = "round"'),
        (HEAD + INPUT.replace("bf16", "bfp16"), '[[input]] 1: dtype = "bfp16"\nhint: did you mean'),
        (HEAD + SHAPED + "compare = 'pcc'\n", '[[output]] 1: compare = "pcc"'),
        (HEAD + INPUT.replace("0x50000", "-4"), "[[input]] 1: at = -4 is not a 32-bit address"),
        (HEAD + INPUT.replace("0x50000", "'a b'"), '[[input]] 1: at = "a b" is not an address'),
        (HEAD + "[[set]]\nat = 0\nvalues = []\n", "[[set]] 1: values is empty"),
        (
            HEAD + "[[set]]\nat = 0\nvalues = [4]\n",
            "[[set]] 1: 4 is not a value\nhint: one of u8 u16",
        ),
        (
            HEAD + "[[set]]\nat = 0\ncore = 'trisc'\nvalues = ['u8:1']\n",
            '[[set]] 1: core = "trisc"',
        ),
    ],
)
def test_wrong_values(text, answer):
    assert refusal(text).startswith(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("bhemu = 1\n", "no core is released, so nothing would run\nhint: for example [cores]"),
        (HEAD[:-2] + ", release = false }\n", "no core is released"),
        ("bhemu = 1\n[cores]\nbrisc = { pc = 0 }\n", 'kind = "elf", but no core has an elf'),
        (HEAD + INPUT.replace("at = 0x50000\n", ""), "[[input]] 1: missing key at"),
        (HEAD + INPUT.replace('dtype = "bf16"\n', ""), "[[input]] 1: missing key dtype"),
        (HEAD + INPUT.replace('file = "a.npy"\n', ""), "[[input]] 1: missing key file"),
        (HEAD + OUTPUT, "[[output]] 1: missing key shape\nhint: or give expect"),
        (HEAD + "[[set]]\nat = 0\n", "[[set]] 1: missing key values"),
        (HEAD + "[run]\nuntil = [{ word = 0 }]\n", "[run]: [[until]] 1: missing key equals"),
        (IMAGE, "[image]: missing key file"),
        (
            HEAD + "[image]\nfile = 'l1.npz'\n",
            '[image]: an image belongs to kind = "image", not "elf"',
        ),
    ],
)
def test_missing_pieces(text, answer):
    assert refusal(text).startswith(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (HEAD.replace("k.elf", "no.elf"), "[cores]: [trisc0]: elf: no such file: no.elf"),
        (HEAD + INPUT.replace("a.npy", "no.npy"), "[[input]] 1: file: no such file: no.npy"),
        (HEAD + OUTPUT + "expect = 'no.npy'\n", "[[output]] 1: expect: no such file: no.npy"),
        (HEAD + SHAPED + 'save = "\\u0000"\n', "[[output]] 1: save: no file has the name '\\x00'"),
        (HEAD + SHAPED + "save = ''\n", "[[output]] 1: save: no file has the name ''"),
        (HEAD + SHAPED + "save = 'no/c.npy'\n", "[[output]] 1: save: no such folder: no"),
        (IMAGE + "[image]\nfile = 'no.npz'\n", "[image]: file: no such file: no.npz"),
        (
            HEAD + INPUT.replace("a.npy", "bytes.bin"),
            "[[input]] 1: bytes.bin is not .npy\nhint: dtype",
        ),
        (HEAD + INPUT.replace("a.npy", "fake.npy"), "[[input]] 1: fake.npy is not a .npy array"),
        (
            HEAD + INPUT.replace("a.npy", "object.npy"),
            "[[input]] 1: object.npy is not a .npy array",
        ),
    ],
)
def test_missing_and_damaged_files(text, answer):
    Path("fake.npy").write_bytes(b"hello")
    np.save("object.npy", np.array([{}]), allow_pickle=True)
    assert refusal(text).startswith(answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            HEAD + INPUT + "shape = [64, 64]\n",
            "[[input]] 1: shape = [64, 64], but a.npy holds [64, 96]",
        ),
        (HEAD + INPUT + "shape = [64, 0]\n", "[[input]] 1: shape = [64, 0] is not a shape"),
        (HEAD + INPUT + "shape = [64.0]\n", "[[input]] 1: shape = [64.0] is not a shape"),
        (HEAD + INPUT + "shape = []\n", "[[input]] 1: shape = [] is not a shape"),
        (HEAD + SHAPED + "expect = 'a.npy'\n", "[[output]] 1: shape = [64, 64], but a.npy holds"),
        (
            HEAD + OUTPUT + "shape = [64, 65]\n",
            "[[output]] 1: shape [64, 65] is not a whole number",
        ),
        (
            HEAD + INPUT.replace("0x50000", "0x17F000"),
            "[[input]] 1: 12288 bytes at 0x17F000 are not",
        ),
        (
            HEAD + SHAPED.replace("0x70000", "0x17E002"),
            "[[output]] 1: 8192 bytes at 0x17E002 are not",
        ),
    ],
)
def test_wrong_sizes(text, answer):
    assert refusal(text).startswith(answer)


def test_the_end_of_l1_is_in_l1():
    assert load(HEAD + SHAPED.replace("0x70000", "0x17E000")).outputs[0].at == 0x17E000


def test_an_image_program():
    program = load(IMAGE + '[image]\nfile = "l1.npz"\n')
    assert (program.kind, program.image) == ("image", Path("l1.npz"))
    assert program.cores == {"trisc0": CoreSpec("trisc0", pc=0x10000)}


def test_addresses_by_name():
    names = {"args": 0x8000, "RISCV_DEBUG_REG_SOFT_RESET_0": 0xFFB121B0, "a.b": 4}
    assert resolve_at(0x10, names.__getitem__) == 0x10
    assert resolve_at("args", names.__getitem__) == 0x8000
    assert resolve_at("args+4", names.__getitem__) == 0x8004
    assert resolve_at("args - 0x10", names.__getitem__) == 0x7FF0
    assert resolve_at("a.b", names.__getitem__) == 4
    assert resolve_at("RISCV_DEBUG_REG_SOFT_RESET_0", names.__getitem__) == 0xFFB121B0
    with pytest.raises(InputError, match=r"'args\+' is not an address"):
        resolve_at("args+", names.__getitem__)


@pytest.mark.parametrize(
    ("address", "size"), [(-1, 1), (0x180000, 1), (0x17FFFF, 2), (0, 0x180001)]
)
def test_l1_extent(address, size):
    check_l1("x", 0x17FFFF, 1)
    with pytest.raises(InputError, match=r"x: .* are not inside L1 \(0x0\.\.0x180000\)"):
        check_l1("x", address, size)
