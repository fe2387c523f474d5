"""Who could change an awaited word over the NoC: who has, else whose code would."""

import noc_program as p
import pytest

from bhemu.errors import NoProgress
from bhemu.machine.hang.givers import NO_MORE
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.hang.waits import Waiter
from bhemu.machine.machine import Chip
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import A0, A1, A2, PARK, bne, code, li, lw, sw

OWN, OTHER, THIRD, FLAG, NEVER = (1, 2), (3, 4), (5, 6), 0x400, 0x500
ANSWER = (0x600, p.hi(OWN))


def poll(address: int, value: int) -> list[int]:
    """Wait until a word of L1 has a value."""
    return [*li(A1, address), *li(A2, value), lw(A0, A1), bne(A0, A2, -4)]


def waits(chip: Chip, xy: XY) -> Waiter:
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    assert isinstance(caught.value.graph, WaitGraph)
    who = f"({xy[0]},{xy[1]}) brisc"
    (found,) = (one for one in caught.value.graph.waiters if one.who == who)
    return found


@pytest.mark.parametrize("to", [OTHER, THIRD])
def test_whose_code_would_increment_a_word(to: XY) -> None:
    """OWN comes to its request only after a word that nobody writes; on THIRD nobody waits."""
    chip = Chip(livelock=50)
    p.put(chip, OTHER, poll(FLAG, 1))
    p.put(chip, OWN, poll(NEVER, 1), p.send(p.ATOMIC, (FLAG, p.hi(to)), ANSWER, p.INCREMENT))
    found = [(one.who, one.how) for one in waits(chip, OTHER).releasers]
    expected = [("(1,2) brisc", "its code sends a request to it")]
    assert found == (expected if to == OTHER else [])


@pytest.mark.parametrize("end", [OTHER, (2, 4)])
def test_whose_code_would_write_a_word_of_a_rectangle(end: XY) -> None:
    """Its coordinates are held by memory; the smaller rectangle ends before OTHER."""
    chip = Chip(livelock=50)
    chip.write32(*OWN, 0x700, p.box((2, 2), end))
    p.put(chip, OTHER, poll(FLAG, 1))
    words = p.send(p.WRITE | p.MULTICAST, (FLAG, p.hi(OWN)), (FLAG, 0))
    at = [*li(A1, p.NIU[0]), *li(A2, 0x700), lw(A0, A2), sw(A0, A1, p.RET + 8)]
    go = words[-3:]  # the last register: the request goes
    p.put(chip, OWN, poll(NEVER, 1), words[:-3], at, go)
    found = [one.who for one in waits(chip, OTHER).releasers]
    assert found == (["(1,2) brisc"] if end == OTHER else [])


def test_who_has_written_the_word_and_who_wrote_it_elsewhere() -> None:
    """OWN has incremented FLAG of OTHER, where 2 is waited for; THIRD waits as well."""
    chip = Chip(livelock=50)
    p.put(chip, OTHER, poll(FLAG, 2))
    p.put(chip, THIRD, poll(FLAG, 2))
    p.put(chip, OWN, p.send(p.ATOMIC, (FLAG, p.hi(OTHER)), ANSWER, p.INCREMENT))
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    graph = caught.value.graph
    assert isinstance(graph, WaitGraph)
    first, second = graph.waiters
    assert (first.who, second.who) == ("(5,6) brisc", "(3,4) brisc")  # the root is who got none
    said = "this word of tile (3,4) was written by (1,2) brisc pc"
    assert said in first.history
    assert f"its sender leaves it out, or (5,6) brisc is not to wait: {said}" in caught.value.hint
    (giver,) = second.releasers
    assert giver.who == "(1,2) brisc" and giver.how.startswith("it has written there over the NoC")
    assert giver.state == "has parked"
    assert graph.headline() == (
        "(5,6) brisc waits for L1 word 0x400 to become 2 (it is 0): nothing was ever written there"
        " over the NoC, only to this word of (3,4) by (1,2) brisc"
    )


@pytest.mark.parametrize("sent", [1, 2])
def test_who_has_incremented_the_word_less_often(sent: int) -> None:
    """OTHER waits for 5; OWN has incremented FLAG twice, THIRD `sent` times."""
    chip = Chip(livelock=50)
    p.put(chip, OTHER, poll(FLAG, 5))
    for xy, number in ((OWN, 2), (THIRD, sent)):
        request = p.send(p.ATOMIC, (FLAG, p.hi(OTHER)), (0x600, p.hi(xy)), p.INCREMENT, data=1)
        p.put(chip, xy, *[request] * number)
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    graph = caught.value.graph
    assert isinstance(graph, WaitGraph)
    text = graph.headline()
    if sent == 2:
        assert text.endswith("each of them has written there 2 times and has parked")
        assert "(1,2) brisc" in text
    else:
        assert "which (5,6) brisc could give" in text
        assert text.endswith("has written there once so far, others 2 times, and has parked")
        assert "(1,2) brisc" not in text


def test_a_count_that_has_passed_what_is_waited_for() -> None:
    chip = Chip(livelock=50)
    request = p.send(p.ATOMIC, (FLAG, p.hi(OTHER)), ANSWER, p.INCREMENT, data=1)
    p.put(chip, OWN, request, request)
    chip.run("idle")
    p.put(chip, OTHER, poll(FLAG, 1))
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    graph = caught.value.graph
    assert isinstance(graph, WaitGraph)
    assert graph.headline().endswith(
        "(it is 2 already): it has passed that, and nothing has set it back"
    )


def test_a_ring_on_one_tile_of_a_chip_gets_no_hint_of_the_noc() -> None:
    """brisc and ncrisc of OTHER wait for words that they store to for each other."""
    chip = Chip(livelock=50)
    ring = ("brisc", 0, FLAG, NEVER), ("ncrisc", 0x12000, NEVER, FLAG)
    for core, at, awaited, given in ring:
        stores = [*li(A1, given), *li(A2, 1), sw(A2, A1), PARK]
        chip.tile[OTHER].write(at, code(poll(awaited, 1), stores))
        chip.tile[OTHER].core[core].release()
    p.put(chip, OWN, [])
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    assert caught.value.hint.startswith("one in the cycle must give before it takes")
    assert caught.value.graph.cycle == ("(3,4) brisc", "(3,4) ncrisc")


def test_who_sent_before_its_loop_is_in_no_cycle() -> None:
    """OWN has incremented FLAG, and waits for OTHER, which would answer after the second one."""
    chip = Chip(livelock=50)
    answer = p.send(p.ATOMIC, (NEVER, p.hi(OWN)), (0x600, p.hi(OTHER)), p.INCREMENT)
    p.put(chip, OTHER, poll(FLAG, 2), answer)
    request = p.send(p.ATOMIC, (FLAG, p.hi(OTHER)), ANSWER, p.INCREMENT, data=1)
    p.put(chip, OWN, request, poll(NEVER, 1))
    with pytest.raises(NoProgress) as caught:
        chip.run(timeout_s=60)
    graph = caught.value.graph
    assert graph.cycle == () and graph.waiters[0].who == "(3,4) brisc"
    assert graph.headline() == (
        "(3,4) brisc waits for L1 word 0x400 to become 2 (it is 1): (1,2) brisc (it has written"
        f" there over the NoC once) {NO_MORE}"
    )


@pytest.mark.parametrize("at", [NEVER, 0x700])
def test_a_request_to_a_tile_that_the_awaited_word_names(at: int) -> None:
    """The word at 0x700 names OWN: that request is for another tile."""
    chip = Chip(livelock=50)
    chip.write32(*OWN, 0x700, p.hi(OWN))
    p.put(chip, OTHER, poll(FLAG, 1))
    words = p.send(p.ATOMIC, (FLAG, 0), ANSWER, p.INCREMENT)
    to = [*li(A1, p.NIU[0]), *li(A2, at), lw(A0, A2), sw(A0, A1, p.TARG + 8)]
    go = words[-3:]  # the last register: the request goes
    p.put(chip, OWN, poll(NEVER, p.hi(OTHER)), words[:-3], to, go)
    found = [one.how for one in waits(chip, OTHER).releasers]
    unknown = "its code sends a request to this word of a tile that it reads from what it waits for"
    assert found == ([unknown] if at == NEVER else [])


@pytest.mark.parametrize("gave", [OWN, THIRD])
def test_one_that_never_gave_is_named_beside_one_that_can_no_more(gave: XY) -> None:
    """`gave` has incremented FLAG before its loop, the other one would after it."""
    chip = Chip(livelock=50)
    p.put(chip, OTHER, poll(FLAG, 2))
    for xy in (OWN, THIRD):
        request = p.send(p.ATOMIC, (FLAG, p.hi(OTHER)), (0x600, p.hi(xy)), p.INCREMENT, data=1)
        p.put(chip, xy, *([request, poll(NEVER, 1)] if xy == gave else [poll(NEVER, 1), request]))
    wait = waits(chip, OTHER)
    assert [one.given for one in wait.releasers] == [0, 1]
    assert [one.passed for one in wait.releasers] == [False, True]
    late = "(1,2) brisc" if gave == THIRD else "(5,6) brisc"
    text = WaitGraph((wait,)).headline()
    assert f"which {late} could give (its code sends a request to it)" in text
    assert text.endswith(
        f"; {late} has not written there so far, others once, and goes round in a loop itself"
    )
