"""What cores, threads and NoC interfaces did over the time of a run, as a picture."""

from bhemu.pictures import html
from bhemu.pictures.recording import LANES, Recording
from bhemu.program.coordinates import XY

_WIDTH, _LEFT, _ROW, _TOP = 1200, 70, 18, 20
_TICKS = 8
_EMPTY = ("idle", "reset")
_COLOURS = {
    "works": "#2e7d32",
    "turn": "#a5d6a7",
    "polls": "#f9a825",
    "waits": "#ef6c00",
    "parked": "#90a4ae",
    "stopped": "#c62828",
}
_MEANS = {
    "works": "executes", "turn": "could go on; others had their turn",
    "polls": "goes round in a loop without effect", "waits": "is blocked", "parked": "has ended",
    "stopped": "assert, or held",
}  # fmt: skip


def legend() -> str:
    """The colours in words."""
    return "".join(
        f'<span class="key"><i style="background:{_COLOURS[kind]}"></i>{kind}: {said}</span> '
        for kind, said in _MEANS.items()
    )


def picture(recording: Recording, xy: XY) -> str:
    """SVG of one tile; lanes on which nothing ever was are left out."""
    begin, end = recording.clocks[0], max(recording.clocks[-1], recording.clocks[0] + 1)
    scale = (_WIDTH - _LEFT) / (end - begin)
    parts, row = [], 0
    for lane in LANES:
        segments = [one for one in recording.lane(xy, lane) if one.kind not in _EMPTY]
        if not segments:
            continue
        y = _TOP + row * _ROW
        parts.append(f'<text x="0" y="{y + 12}">{lane}</text>')
        row += 1
        for one in segments:
            text = " ".join(filter(None, (lane, one.kind, one.text)))
            text += f", clock {one.begin} to {one.end}"
            x, width = _LEFT + (one.begin - begin) * scale, (one.end - one.begin) * scale
            parts.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0.5):.2f}" height="{_ROW - 4}"'
                f' fill="{_COLOURS[one.kind]}"><title>{html.text(text)}</title></rect>'
            )
    height = _TOP + row * _ROW
    for tick in range(_TICKS + 1):
        clock = begin + (end - begin) * tick // _TICKS
        x = _LEFT + (clock - begin) * scale
        anchor = "end" if tick == _TICKS else "middle" if tick else "start"
        parts.append(
            f'<path class="tick" d="M{x:.1f} {_TOP - 4}V{height}"/>'
            f'<text x="{x:.1f}" y="12" text-anchor="{anchor}">{clock}</text>'
        )
    view = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    label = f"tile ({xy[0]},{xy[1]}) over the clock"
    return f'<svg class="time" {view} role="img" aria-label="{label}">{"".join(parts)}</svg>'
