"""Multicasts in modelled time: nearer tiles are reached first, a linked one keeps its path."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noc_program import hi, put, send, wait
from script_module import script

from bhemu import Chip, Snapshot
from bhemu.debug.profile import transfer_source
from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.devices.niu import ACKS
from bhemu.noc import timed, times

noc_probes: Any = script("scripts/noc_probes.py")
CASTS = tomllib.loads(noc_probes.ANCHORS.read_text())["multicast"]
HERE, FAR, DATA, SIZE = (1, 2), (4, 5), 0x30000, 64
CAST = request.WRITE | request.ANSWERED | request.MULTICAST | request.STATIC_CHANNEL | 4 << 13
TILES = [(x, y) for x in range(HERE[0], FAR[0] + 1) for y in range(HERE[1], FAR[1] + 1)]


def sending(chip: Chip, *controls: int, to: tuple[int, int] = FAR) -> None:
    """Each sends 64 bytes of its own, 64 bytes farther on than the last."""
    for i in range(len(controls)):
        chip.tile[HERE].write(DATA + SIZE * i, bytes([i + 1] * SIZE))
    box = hi(to) | hi(HERE) << 12
    at = [DATA + SIZE * i for i in range(len(controls))]
    sends = [
        send(control, (one, hi(HERE)), (one + 0x1000, box), SIZE)
        for control, one in zip(controls, at, strict=True)
    ]
    count = sum(len(TILES) - (not control & request.SELF) for control in controls)
    put(chip, HERE, *sends, wait(ACKS, count))


def arrivals(chip: Chip) -> list[dict[tuple[int, int], int]]:
    """By request, then by tile: the cycle in which its bytes are there."""
    found: list[dict[tuple[int, int], int]] = [{}, {}]
    while chip.run(limit=1).reason == "limit":
        for tile in chip.tiles_made():
            for i in range(2):
                if tile.read(DATA + 0x1000 + SIZE * i, 1) == bytes([i + 1]):
                    found[i].setdefault(tile.xy, chip.clock)
    return found


def links(at: tuple[int, int]) -> int:
    return at[0] - HERE[0] + at[1] - HERE[1]


@pytest.mark.parametrize("itself", [0, request.SELF], ids=["others", "itself too"])
def test_a_multicast_reaches_tiles_by_the_links_to_them(itself: int) -> None:
    chip = Chip(timing="model")
    sending(chip, CAST | itself)
    found = arrivals(chip)[0]
    assert sorted(found) == [xy for xy in TILES if itself or xy != HERE]
    hop = times.FIGURES["hop"].cycles
    first = min(found, key=links)
    for xy, cycle in found.items():
        assert cycle - found[first] == pytest.approx((links(xy) - links(first)) * hop, abs=1.01), xy


def test_its_answers_are_all_counted_and_it_ends() -> None:
    chip = Chip(timing="model")
    sending(chip, CAST | request.SELF)
    assert chip.run().reason == "idle"
    for xy in TILES:
        assert chip.tile[xy].read(DATA + 0x1000, SIZE) == b"\1" * SIZE


@pytest.mark.parametrize("linked", [0, request.LINKED])
def test_a_linked_multicast_keeps_its_path(linked: int) -> None:
    chip = Chip(timing="model")
    sending(chip, CAST | linked, CAST)
    first, second = (found[FAR] for found in arrivals(chip))
    path = (times.WIDTH + times.HEIGHT + links(FAR)) * times.FIGURES["hop"].cycles
    assert (second - first > path - 1) == (not linked)


def cut() -> Iterator[int]:
    """Cycles in which a multicast has reached some tiles and not all."""
    chip = Chip(timing="model")
    sending(chip, CAST)
    found = arrivals(chip)[0]
    yield from sorted(set(found.values()))[:-1]


def test_a_state_within_a_multicast_goes_on_as_the_run_would(tmp_path: Path) -> None:
    whole = Chip(timing="model")
    sending(whole, CAST)
    whole.run()
    cycles = list(cut())
    assert len(cycles) > 3
    for cycle in cycles:
        chip = Chip(timing="model")
        sending(chip, CAST)
        chip.run(limit=cycle)
        chip.snapshot().save(tmp_path / "state.npz")
        again = Chip(timing="model")
        again.restore(Snapshot.load(tmp_path / "state.npz"))
        again.run()
        assert again.clock == whole.clock
        for xy in TILES:
            assert again.tile[xy].l1.tobytes() == whole.tile[xy].l1.tobytes(), (cycle, xy)


def test_bursts_to_squares_take_what_a_card_takes() -> None:
    """But the one that the sender is part of: a card is as fast with it as if it were linked."""
    chosen = [
        one for one in CASTS
        if one["requests"] in (1, 4) and min(one["grid"]) > 1 and not one["loopback"]
    ]  # fmt: skip
    errors = [abs(point.error) for point in noc_probes.multicasts({"multicast": chosen})]
    assert len(errors) == 77
    assert np.median(errors) < 0.04 and max(errors) < 0.15


def test_a_profile_names_the_source_of_its_time() -> None:
    what = request.WRITE | noc_map.TENSIX << 2 | timed.MULTICAST
    assert transfer_source(what) == "derived"
