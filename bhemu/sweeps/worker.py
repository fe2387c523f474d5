"""What a worker process does: it keeps files and ELFs, runs programs and reports each by a record.

All a worker has of a sweep is what chunks bring along: a file that it lacks it asks for.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bhemu import __version__
from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.launch import Launched, RunResult, tolerated
from bhemu.machine.precompile import ElfCache
from bhemu.memmap import CORE_NAMES
from bhemu.program.outputs import collect
from bhemu.program.specs import OutputSpec, Program
from bhemu.sweeps.spec import Base, Chunk, Job, Record, Reply
from bhemu.system import whole_file

OUTCOMES = {
    0: "ok",
    1: "differs",
    2: "bad input",
    3: "no progress",
    4: "not modelled",
    5: "undefined or fault",
    6: "assert",
    7: "limit",
    70: "internal error",
}
FOUND = "finding"  # a run that was ok, of which a check found something
_WAITS = 20  # lines of a wait-for graph in a record
_workers = threading.local()  # a tile belongs to a thread, and so does what serves its launches


def begin() -> None:
    """A local worker leaves Ctrl-C to the process that started it, and ends when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """End this process, whatever it does, when the one that started it is gone."""
    parent.join()
    os._exit(1)


def perform(chunk: Chunk) -> Reply:
    """Run the chunk in this thread's worker."""
    if chunk.version != __version__:
        return Reply(refused=f"a worker has bhemu {__version__}, not {chunk.version}")
    if (worker := getattr(_workers, "own", None)) is None or worker.store != chunk.store:
        worker = _workers.own = Worker(chunk.store)
    found: Reply = worker.perform(chunk)
    return found


class Worker:
    """Files by digest in `store` (or a folder of its own), programs and ELFs read from there."""

    def __init__(self, store: str | None) -> None:
        self.store = store
        if store is None:
            self._own = whole_file.Temporary("bhemu-sweep-")
            store = str(self._own.path)
        self._folder = Path(store)
        self._held: set[str] = set()
        self._bases: dict[str, tuple[Program, dict[str, str]]] = {}
        self._elfs = ElfCache()

    def perform(self, chunk: Chunk) -> Reply:
        """A record for each run, or what is missing."""
        for digest, data in chunk.blobs.items():
            keep(self._folder / digest, data)
        if missing := {d for job in chunk.jobs for d in self._missing(job)}:
            return Reply(missing=tuple(sorted(missing)))
        return Reply(records=tuple(self._run(job) for job in chunk.jobs))

    def _missing(self, job: Job) -> list[str]:
        lacking = [d for d in job.files.values() if not self._has(d)]
        if not self._has(job.base):
            return [*lacking, job.base]
        if job.base not in self._bases:
            base: Base = pickle.loads((self._folder / job.base).read_bytes())
            lacking += [d for d in base.files.values() if not self._has(d)]
            if not lacking:
                moves = {path: str(self._folder / d) for path, d in base.files.items()}
                self._bases[job.base] = moved(base.program, moves), moves
        return lacking

    def _has(self, digest: str) -> bool:
        if digest not in self._held and (self._folder / digest).exists():
            self._held.add(digest)
        return digest in self._held

    def _run(self, job: Job) -> Record:
        """One run, whatever comes of it."""
        program, moves = self._bases[job.base]
        own = {path: str(self._folder / digest) for path, digest in job.files.items()}
        started = time.perf_counter()
        record: Record = {"number": job.number}
        try:
            record |= self._finished(job, program, own)
        except BhemuError as error:
            record |= _failed(error)
        except Exception as problem:
            record |= _failed(Internal(f"{type(problem).__name__}: {problem}"))
        record["seconds"] = round(time.perf_counter() - started, 6)
        moves = {**moves, **own}
        back = {new: old for old, new in moves.items()}
        texts = {k: _replaced(v, back) for k, v in record.items() if isinstance(v, str)}
        return {**record, **texts}

    def _finished(self, job: Job, program: Program, own: dict[str, str]) -> Record:
        """The record of a run that could be launched."""
        flags = {name: tuple(_replaced(t, own) for t in texts) for name, texts in job.flags.items()}
        chosen = replace(job, flags=flags).configured(program)
        chosen = replace(chosen, outputs=tuple(replace(o, save=None) for o in chosen.outputs))
        launched = Launched(chosen, elfs=self._elfs)
        if checks := job.options.get("check"):
            launched.keep_history()
        ended = launched.finish()
        record = _failed(ended.error) if ended.error is not None else _compared(launched)
        if ended.stop is not None:
            record["stop"] = ended.stop.reason
        # Of all tiles: instructions retired by core, Tensix words executed by thread
        tiles = launched.tiles
        record["clock"] = launched.clock
        for index, name in enumerate(CORE_NAMES):
            record[name] = sum(int(tile.state.retired[index]) for tile in tiles)
        for t in range(3):
            record[f"t{t}"] = sum(int(tile.state.executed[t]) for tile in tiles)
        if known := tolerated(tiles):
            record["tolerated"] = json.dumps(dict(sorted(known.items())))
        return record | _findings(launched, str(checks), ended) if checks else record


def moved(value: Any, moves: Mapping[str, str]) -> Any:
    """`value` with every path of `moves` in it replaced."""
    if isinstance(value, Path):
        return Path(moves.get(str(value), value))
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: moved(getattr(value, f.name), moves) for f in fields(value)}
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {key: moved(each, moves) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(moved(each, moves) for each in value)
    return value


def keep(path: Path, data: bytes) -> None:
    """Write a file so that another process sees none of it, or all."""
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        whole_file.write(path, lambda file: file.write(data), durable=False)


def _replaced(text: str, moves: Mapping[str, str]) -> str:
    for old, new in moves.items():
        text = text.replace(old, new)
    return text


def _compared(launched: Launched) -> Record:
    """What came out: a digest of all outputs, how they compare, how far they are off at most."""
    digest = hashlib.sha256()

    def read(spec: OutputSpec) -> tuple[int, bytes]:
        address, data = launched.machine.output(spec)
        digest.update(f"{spec.name} {len(data)}:".encode() + data)
        return address, data

    results, host = collect(launched.program, read), launched.machine.loop.host
    equal = all(result.equal for result in results) and (host is None or host.equal)
    code = 0 if equal else 1
    found: Record = {"outcome": OUTCOMES[code], "exit_code": code}
    if reports := [result.report for result in results if result.report is not None]:
        worst = [r.worst.ulp for r in reports if r.worst is not None and r.worst.ulp is not None]
        found["differing"] = sum(report.differing for report in reports)
        found["worst_ulp"] = max(worst, default=0)
    if results:
        found["digest"] = digest.hexdigest()[:32]
    found["outputs"] = []
    for result in results:  # in the JSON lines: what differs first and most, in words
        told: Record = {"name": result.spec.name}
        if (report := result.report) is not None:
            told |= {"total": report.total, "differing": report.differing}
            if report.first is not None:
                told |= {"first": str(report.first), "worst": str(report.worst)}
        found["outputs"].append(told)
    if host is not None:  # of a session: what its host has read, as an output
        known = host.as_dict()
        wrong = known["differences"]
        told = {"name": known["name"], "total": host.reads, "differing": len(wrong)}
        if wrong:
            told["first"] = "at ({tile[0]},{tile[1]}) {at:#x}".format(**wrong[0])
        found["outputs"].append(told)
    return found


def _failed(error: BhemuError) -> Record:
    """An error with its place: of a hang, where the first agent waits."""
    record: Record = {
        "outcome": OUTCOMES.get(error.exit_code, OUTCOMES[70]),
        "exit_code": error.exit_code,
        "category": error.category,
        "rule": error.rule or error.category,
        "message": error.message,
    }
    where: dict[str, Any] = {} if error.where is None else error.where.as_dict()
    record["where"] = "" if error.where is None else str(error.where)
    if isinstance(error, NoProgress):
        record["waits"] = error.waits[:_WAITS]
        waiters = error.as_dict()["graph"]
        if not where and isinstance(waiters, dict) and waiters.get("waiters"):
            where = waiters["waiters"][0].get("where") or {}
            record["where"] = error.waits[0].strip()
    return record | _place(where)


def _place(where: Mapping[str, Any]) -> Record:
    """The columns that say where."""
    function = where.get("function") or str(where.get("symbol", "")).partition("+")[0] or None
    place = {**where, "function": function}
    if isinstance(where.get("tile"), list):
        place["tile"] = ",".join(map(str, where["tile"]))
    names = ("tile", "core", "thread", "pc", "function", "file", "line")
    return {name: place[name] for name in names if place.get(name) is not None}


def _findings(launched: Launched, checks: str, ended: RunResult) -> Record:
    """What checks find; a run that was fine without them has the first finding's place."""
    from bhemu.why import checks as known
    from bhemu.why import question

    asked = question.context(launched, ended)
    findings = known.findings(asked, known.named(checks))
    record: Record = {"findings": [line for one in findings for line in one.lines()]}
    if asked.symptom.fine and findings:
        first = findings[0]
        record |= {"outcome": FOUND, "exit_code": 1, "category": "Finding", "rule": first.check}
        record |= {"message": first.text, **_place(first.culprit)}
    return record
