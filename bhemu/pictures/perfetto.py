"""A run as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.

A process is a tile, its threads are cores, Tensix threads and the NoC; one microsecond of the
viewer is one unit of the clock. Words and stores stand at their exact clocks; what cores do between
two looks at the run is as exact as the looks are close.
"""

from collections.abc import Iterator
from typing import Any

from bhemu.machine.word_text import Entry, Places
from bhemu.memmap import CORE_NAMES
from bhemu.pictures.recording import LANES, Recording
from bhemu.program.coordinates import XY
from bhemu.tensix.observe import FIRST_CORE

Event = dict[str, Any]
MOST = 1_000_000  # words and stores
_NOC = LANES.index("NoC") + 1
_COMMAND = "NOC_CMD_CTRL"  # the store to it sends a request


def document(recording: Recording, name: str) -> dict[str, Any]:
    """The whole file, JSON-ready."""
    events = [event for i, xy in enumerate(recording.seen) for event in _tile(recording, xy, i + 1)]
    other = {"program": name, "unit": "1 us = 1 clock unit of the emulator"}
    if recording.cut:
        other["words"] = "only the first ones are here"
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _tile(recording: Recording, xy: XY, pid: int) -> Iterator[Event]:
    yield _named("process_name", pid, 0, f"tile ({xy[0]},{xy[1]})")
    for tid, lane in enumerate(LANES, start=1):
        yield _named("thread_name", pid, tid, lane)
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid,
               "args": {"sort_index": tid}}  # fmt: skip
        for begin, end, kind, text in recording.lane(xy, lane):
            if kind in ("idle", "reset", "turn") or (lane[0] == "T" and kind == "works"):
                continue
            shown = text if kind == "works" and text else f"{kind} {text}".strip()
            yield {"ph": "X", "name": shown, "cat": kind, "pid": pid, "tid": tid,
                   "ts": begin, "dur": end - begin}  # fmt: skip
    yield from _words(recording, xy, pid)


def _named(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _words(recording: Recording, xy: XY, pid: int) -> Iterator[Event]:
    places = recording.places.get(xy)
    registers: dict[str, str] = {}  # of the NoC interfaces, as the stores left them
    for number, entry in enumerate(recording.words.get(xy, ())):
        assert places is not None
        if entry[0] >= FIRST_CORE:
            yield from _store(places, entry, pid, registers)
            continue
        word = places.word(number, entry)
        yield {
            "ph": "X", "name": word.text.split()[0], "cat": "word", "pid": pid,
            "tid": LANES.index(f"T{word.thread}") + 1, "ts": entry[4] - 1, "dur": 1,
            "args": {"word": f"{word.word:#010x}", "text": word.text, "pc": f"{word.pc:#x}",
                     "from": word.place},
        }  # fmt: skip


def _store(places: Places, entry: Entry, pid: int, registers: dict[str, str]) -> Iterator[Event]:
    store = places.store(entry)
    told = {"address": f"{store.address:#x}", "value": f"{store.value:#x}", "from": store.place}
    event: Event = {"ph": "i", "s": "t", "cat": "store", "pid": pid, "ts": entry[4], "args": told}
    yield {**event, "name": store.name or "store", "tid": CORE_NAMES.index(store.core) + 1}
    registers[store.name] = f"{store.value:#x}"
    initiator, command, _ = store.name.partition(_COMMAND)
    if command and store.value:
        asked = {name: n for name, n in registers.items() if name.startswith(initiator)}
        about = {**event, "args": {**asked, "from": store.place}}
        yield {**about, "name": f"request by {store.core}", "cat": "noc", "tid": _NOC}
