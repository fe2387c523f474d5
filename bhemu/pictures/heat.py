"""Where outputs differ: an image with a point per element, and a grid of their tiles."""

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

from bhemu.pictures import html
from bhemu.program.specs import OutputSpec
from bhemu.program.tensor import EDGE

_MOST = 512  # points of the image on either side
_TILES = 4096  # cells of the grid
_SIDE = 384  # of the image on the page, in pixels, at least
_EQUAL, _DIFFERS = np.array([222, 235, 222]), np.array([198, 40, 40])

_Share = npt.NDArray[np.float64]


def section(spec: OutputSpec, data: bytes) -> str:
    """What the page shows of one output: in words, the image, the grid."""
    shape = " x ".join(str(n) for n in spec.shape)
    head = f"<h3>{html.text(spec.name)}</h3><p>{shape} {html.text(spec.dtype)}"
    bad = spec.differing(data)
    if bad is None:
        return f"{head}, not compared</p>"
    head += f", compared by {html.text(spec.compare)}: {int(bad.sum())} of {bad.size} differ</p>"
    flat = bad.reshape(-1, bad.shape[-1])
    grid = _grid(spec, bad)
    if bad.any():
        head += '<p class="quiet">a point per element, red where it differs'
        head += f"{'; beside it its tiles, the redder the more do' if grid else ''}</p>"
    return f'{head}<div class="heat">{_image(spec.name, _shares(flat, _MOST))}{grid}</div>'


def _shares(bad: npt.NDArray[np.bool_], most: int) -> _Share:
    """The share of elements that differ, in at most `most` x `most` rectangles."""
    shares = bad.astype(np.float64)
    for axis in (0, 1):
        block = -(-shares.shape[axis] // most)
        if block > 1:
            edges = np.arange(0, shares.shape[axis], block)
            count = np.diff(np.append(edges, shares.shape[axis]))
            shares = np.add.reduceat(shares, edges, axis=axis)
            shares = shares / (count[:, None] if axis == 0 else count)
    return shares


def _image(name: str, shares: _Share) -> str:
    rows, columns = shares.shape
    scale = max(_SIDE // max(rows, columns), 1)
    address = base64.b64encode(png(_colours(shares))).decode()
    size = f'width="{columns * scale}" height="{rows * scale}"'
    title = f"{name}: a point per element, red where it differs"
    return f'<img {size} alt="{html.text(title)}" src="data:image/png;base64,{address}">'


def _colours(shares: _Share) -> npt.NDArray[np.uint8]:
    """Red for what differs; a rectangle with a single one is seen too."""
    weight = np.where(shares > 0, 0.35 + 0.65 * shares, 0.0)[..., None]
    colours: npt.NDArray[np.uint8] = (_EQUAL + (_DIFFERS - _EQUAL) * weight).astype(np.uint8)
    return colours


def png(colours: npt.NDArray[np.uint8]) -> bytes:
    """A PNG file of red, green, blue (rows, columns, 3)."""
    height, width, _ = colours.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), colours.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def _grid(spec: OutputSpec, bad: npt.NDArray[np.bool_]) -> str:
    """The tiles of an output, each with how many of its elements differ."""
    edge = EDGE.get(spec.layout)
    if edge is None or bad.ndim < 2:
        return ""
    flat = bad.reshape(-1, bad.shape[-1])
    rows, columns = flat.shape[0] // edge, flat.shape[1] // edge
    if rows * columns > _TILES or not rows * columns:
        return ""
    counts = flat.reshape(rows, edge, columns, edge).sum(axis=(1, 3))
    side = max(min(_SIDE // max(rows, columns), 32), 6)
    colours = _colours(counts / edge**2)
    cells = "".join(
        f'<rect x="{c * side}" y="{r * side}" width="{side - 1}" height="{side - 1}"'
        f' fill="rgb({",".join(map(str, colours[r, c]))})">'
        f"<title>tile ({r}, {c}): {int(counts[r, c])} of {edge * edge} differ</title></rect>"
        for r in range(rows)
        for c in range(columns)
    )
    size = f'width="{columns * side}" height="{rows * side}"'
    return f'<svg class="tiles" {size} role="img" aria-label="tiles">{cells}</svg>'
