"""`bhemu trace`: text, JSON lines, exit codes of run."""

import json
from pathlib import Path

import pytest

import bhemu as package
from bhemu.riscv.assembly import A0, A1, A2, EBREAK, PARK, ZERO, addi, bne, jal, li, sw, tt

ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"
WORDS = [tt("SEMINIT", sem_sel=1, max_value=1), tt("NOP"), PARK]
FOREVER = [tt("NOP"), addi(A0, A0, 1), jal(ZERO, -8)]


def test_a_line_has_thread_pc_and_assembly(write, bhemu) -> None:
    result = bhemu("trace", write(*WORDS))
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        [
            *("0", "T0", "0x00010000", "SEMINIT", "sem_sel=0x1", "max_value=0x1", ";"),
            *("semaphore", "0", "(FPU_SFPU)", "=", "0,", "maximum", "1"),
        ],
        ["1", "T0", "0x00010004", "NOP"],
    ]
    assert "2 words; everything is idle or parked" in result.stderr
    assert bhemu("trace", write(*WORDS), "-q").stderr == ""
    assert " 02000000  NOP" in bhemu("trace", write(*WORDS), "-v").stdout


def test_json_is_one_object_per_line(write, bhemu) -> None:
    result = bhemu("trace", write(*WORDS), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["mnemonic"] == "SEMINIT"
    assert second == {
        "number": 1,
        "thread": 0,
        "word": 0x02000000,
        "pc": 0x10004,
        "origin": "push",
        "mnemonic": "NOP",
        "text": "NOP",
        "clock": 4,
    }


def test_an_elf_gives_functions_lines_and_the_words_of_a_mop(bhemu) -> None:
    lines = bhemu("trace", ADD1, "--thread", 1, "--words", "--json").stdout.splitlines()
    words = [json.loads(line) for line in lines]
    assert {word["thread"] for word in words} == {1}
    assert {word["file"] for word in words} == {"math.c"}
    assert {"mop", "push"} <= {word["origin"] for word in words}
    moves = [w for w in words if w["origin"] == "mop" and w["mnemonic"] == "MOVA2D"]
    assert len(moves) == 8, "four faces of 16 rows, 8 rows each"
    assert len({move["pc"] for move in moves}) == 1


def test_unpacr_and_pacr_tell_addresses_formats_rows_and_who_set_them(bhemu) -> None:
    """As elfs/add1 configures it: 256 datums of a face, rows of 16 to SrcA, 4 rows a PACR."""
    words = [json.loads(line) for line in bhemu("trace", ADD1, "--json").stdout.splitlines()]
    unpacks = [w for w in words if w.get("mnemonic") == "UNPACR"]
    assert [w["meaning"].partition(" (")[0] for w in unpacks[:2]] == [
        "unpacker 0 context 0, reads L1 0x40000..0x40200, 256 datums of bf16,"
        " to SrcA bank 0 rows 0-15 as bf16, hands the bank over",
        "unpacker 0 context 0, reads L1 0x40200..0x40400, 256 datums of bf16,"
        " to SrcA bank 1 rows 0-15 as bf16, hands the bank over",
    ]
    assert "TileDescriptor by trisc0 main+0x28 tensix.h:56 store" in unpacks[0]["set_by"]
    packs = [w["meaning"] for w in words if w.get("mnemonic") == "PACR"]
    assert packs[0].startswith("packs Dst rows 0-3 as bf16, to L1 0xc0000..0xc0080, 64 datums")
    assert packs[-1].startswith("packs Dst rows 60-63 as bf16, to L1 0xc0780..0xc0800, 64 datums")


def test_stores_of_cores_stand_between_the_words_they_belong_to(bhemu) -> None:
    entries = [json.loads(line) for line in bhemu("trace", ADD1, "--json").stdout.splitlines()]
    stores = [e for e in entries if e["origin"] == "store"]
    assert {"brisc", "trisc0", "trisc1", "trisc2"} == {store["core"] for store in stores}
    at = {store["name"]: entries.index(store) for store in stores}
    release = at["RISCV_DEBUG_REG_SOFT_RESET_0"]
    assert release < at["Config bank 0 word 64 THCON_SEC0_REG0_TileDescriptor"]
    numbers = [e["number"] for e in entries if e["origin"] != "store"]
    assert numbers == list(range(221)), "the words are numbered as without the stores"
    plain = bhemu("trace", ADD1, "--words", "--json").stdout.splitlines()
    words = [json.loads(line) for line in plain]
    assert [e["pc"] for e in entries if e["origin"] != "store"] == [w["pc"] for w in words]
    assert all("meaning" not in word for word in words)


@pytest.mark.usefixtures("both_engines")
def test_more_stores_than_the_ring_holds_are_all_shown(write, bhemu) -> None:
    """20000 stores to a GPR in one turn of the core."""
    count = 20_000
    loop = [sw(A0, A1, 4), addi(A0, A0, 1), bne(A0, A2, -8), PARK]
    program = write(li(A1, 0xFFE00000), li(A2, count), addi(A0, ZERO, 0), loop)
    result = bhemu("trace", program, "--quantum", 1_000_000, "--json")
    assert result.exit_code == 0
    stores = [json.loads(line) for line in result.stdout.splitlines()]
    assert [store["value"] for store in stores] == list(range(count))
    assert {store["name"] for store in stores} == {"GPR 1 of T0"}


def test_a_refused_word_ends_the_trace_with_what_it_would_have_done(write, bhemu) -> None:
    result = bhemu("trace", write(tt("NOP"), tt("PACR"), PARK))
    assert result.exit_code == 4
    last = result.stdout.splitlines()[-1]
    assert "PACR  refused: [PACR-FORMATS]" in last
    assert "packs Dst rows 0-3 as fp32" in last
    assert "(packs Dst rows 0-3 as fp32" in result.stderr


def test_limit_words_ends_with_exit_code_0_whatever_comes_later(write, bhemu) -> None:
    result = bhemu("trace", write(*FOREVER), "--limit-words", 3)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)
    assert "as many as were asked for" in result.stderr


@pytest.mark.parametrize(
    ("words", "flags", "code", "rule"),
    [
        (FOREVER, ("--limit", 2000), 7, "LIMIT"),
        ([tt("NOP"), EBREAK], (), 6, "EBREAK"),
        ([tt("NOP"), PARK], ("--until", "0x100=1"), 3, "IDLE"),
    ],
)
def test_exit_codes_and_errors_are_those_of_run(write, bhemu, words, flags, code, rule) -> None:
    path = write(*words)
    result = bhemu("trace", path, *flags)
    assert result.exit_code == code
    assert f"error: [{rule}] " in result.stderr
    result = bhemu("trace", path, *flags, "--json")
    assert (result.exit_code, result.stderr) == (code, "")
    assert json.loads(result.stdout.splitlines()[-1])["rule"] == rule


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no program"),
        (("missing.toml",), "missing.toml: no such file"),
        (("--thread", "3"), "Invalid value for '--thread'"),
        (("--limit-words", "0"), "Invalid value for '--limit-words'"),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, tmp_path, monkeypatch, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = bhemu("trace", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[0]


def test_the_state_is_saved(write, bhemu, tmp_path) -> None:
    assert bhemu("trace", write(*WORDS), "--save", tmp_path / "s.npz", "-q").exit_code == 0
    assert (tmp_path / "s.npz").is_file()
