"""One circular buffer as its users count it: which pages are there, and what is a wrong use."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from bhemu.program.specs import BufferSpec
from bhemu.why.buffer_events import Event


class Wrong(NamedTuple):
    """A wrong use of a buffer: who is to blame, what it does, what to write."""

    by: Event
    text: str
    advice: str


@dataclass
class Buffer:
    """One circular buffer: its counts, who counts, which pages hold something."""

    spec: BufferSpec
    counts: dict[str, int] = field(default_factory=lambda: {"received": 0, "acked": 0})
    counters: dict[str, Event] = field(default_factory=dict)
    last: dict[str, Event] = field(default_factory=dict)  # by "reads", "writes"
    begun: dict[str, list[int]] = field(default_factory=dict)  # where each of them began
    owners: dict[str, set[str]] = field(default_factory=dict)  # who counts, in the whole run
    filled: set[int] = field(default_factory=set)  # pages written since the last were announced
    used: set[int] = field(default_factory=set)  # pages read since the last were given back
    # Accesses since the last change of the count that they belong to.
    begins: dict[str, list[Event]] = field(default_factory=lambda: {"reads": [], "writes": []})
    skips: bool = True  # pages may be given back that nobody has read

    @property
    def held(self) -> int:
        """Pages announced and not given back."""
        return self.counts["received"] - self.counts["acked"]

    @property
    def producers(self) -> set[str]:
        """Who announces pages."""
        return self.owners.get("received", set())

    def state(self) -> str:
        """In words."""
        announced, back = self.counts["received"], self.counts["acked"]
        return (
            f"buffer {self.spec.index} of {self.spec.pages} pages"
            f" (announced so far: {announced}, given back: {back})"
        )

    def counted(self, event: Event) -> Iterator[Wrong]:
        """What is wrong with a change of a count."""
        kind = event.kind
        more, done, again = self._moved(event)
        first = self.counters.setdefault(kind, event)
        if first.who != event.who:
            does = "announces pages of" if kind == "received" else "gives back pages of"
            yield Wrong(
                event,
                f"{event.who} {does} buffer {self.spec.index}, as {first.who} does",
                "a buffer has one producer and one consumer: open another buffer here",
            )
        elif self.held > self.spec.pages:
            yield Wrong(
                event,
                f"{event.who} announces more pages than there is room for: {self.state()}",
                "wait for room, and announce as many pages as were waited for",
            )
        elif kind == "received" and 0 < done < more:
            yield Wrong(
                again or event,
                f"{event.who} announces {more} pages at once, {done} of them written"
                f"{', and that again' if again else ''}: {self.state()}",
                "fill the others too, or announce as many pages as were filled",
            )
        elif self.held < 0:
            yield Wrong(
                event,
                f"{event.who} gives back more pages than were there: {self.state()}",
                "wait for pages, and give back as many as were waited for",
            )
        elif kind == "acked" and 0 < done < more and not self.skips:
            yield Wrong(
                again or event,
                f"{event.who} gives back {more} pages at once, {done} of them read"
                f"{', and that again' if again else ''}: {self.state()}",
                "read the others too, or give back as many pages as were used",
            )

    def _moved(self, event: Event) -> tuple[int, int, Event | None]:
        """Change a count: by how much, the pages written or read before, who did one again."""
        more = event.low - self.counts[event.kind] & 0xFFFF
        self.counts[event.kind] += more
        wrote = event.kind == "received"
        pages, verb = (self.filled, "writes") if wrote else (self.used, "reads")
        again = self._again(verb, more)
        self.begins[verb] = []
        done = len(pages)
        pages.clear()
        return more, done, again

    def _again(self, verb: str, times: int) -> Event | None:
        """The last of the accesses to one place, of which there are as many as pages counted."""
        lows = [one.low for one in self.begins[verb]]
        found = [one for one in self.begins[verb] if lows.count(one.low) >= times > 1]
        return found[-1] if found else None

    def accessed(self, event: Event, *, elsewhere: bool) -> Iterator[Wrong]:
        """What is wrong with an access to its bytes, or right behind them.

        elsewhere: another buffer or tensor holds them.
        """
        spec, end = self.spec, self.spec.at + self.spec.size
        owner = any(event.who in who for who in self.owners.values())
        behind = owner and end <= event.low < end + spec.page and not elsewhere
        if (event.high <= spec.at or event.low >= end) and not behind:
            return
        self.last[event.kind] = event
        self.begun.setdefault(event.kind, []).append(event.low)
        verb = event.kind
        if event.low < spec.at or event.high > spec.at + spec.size:
            yield Wrong(
                event,
                f"{event.who} {verb} {event.low:#x} to {event.high:#x}, past buffer {spec.index}"
                f" ({spec.at:#x} to {spec.at + spec.size:#x})",
                "let the pointer wrap at the end of the buffer",
            )
            return
        page = (event.low - spec.at) // spec.page
        there = {(self.counts["acked"] + k) % spec.pages for k in range(min(self.held, spec.pages))}
        touched = range(page, (event.high - 1 - spec.at) // spec.page + 1)
        (self.filled if verb == "writes" else self.used).update(touched)
        self.begins[verb].append(event)
        if verb == "writes" and page in there and event.who not in self.owners.get("acked", ()):
            yield Wrong(
                event,
                f"{event.who} writes page {page}, which is not free: {self.state()}",
                "wait for room before the page is written (cb_reserve_back)",
            )
        # A producer may use what it fills.
        elif verb == "reads" and page not in there and event.who not in self.producers:
            yield Wrong(
                event,
                f"{event.who} reads page {page}, which is not there: {self.state()}",
                "wait for the page, and give it back only after its last use (cb_wait_front)",
            )
