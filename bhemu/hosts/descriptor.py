"""soc_descriptor.yaml: the chip as a host sees it.

In directory mode a host uses these coordinates as they are on NoC 0 and mirrors those of DRAM, and
only those, within the grid for NoC 1. In the chip's own grid of 17 x 12 some mirrored ports of DRAM
fall on Tensix tiles. So the grid here is 40 x 36: mirrored, ports lie in columns 30 and 39, where
nothing else is. They stand at their physical coordinates, because tt-exalens knows no others.
"""

from collections.abc import Iterable

from bhemu.devices.noc_map import COLUMNS, DRAM, L2CPU, ROUTER, ROWS, SECURITY
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import ARC_AT, BANKS, PCIE_AT, PORTS, Grid

GRID = (40, 36)
_BANK_BYTES = (1 << 32) - (16 << 20)  # the last 16 MiB hold the DRAM tile's own registers
_ETHERNET_BYTES = 512 << 10
# The port that firmware uses, by NoC: two ports, so that the NoCs do not meet.
_ENDPOINTS = ((2, 1), (0, 1), (0, 1), (0, 1), (2, 1), (2, 1), (2, 1), (2, 1))
_FEATURES = """\
features:
  noc: {translation_id_enabled: true}
  unpacker: {version: 2, inline_srca_trans_without_srca_trans_instr: true}
  math: {dst_size_alignment: 32768}
  packer: {version: 2}
  overlay: {version: 2}
"""


def soc_descriptor() -> str:
    """The text of the file: 140 Tensix tiles, eight banks of DRAM, no Ethernet."""
    places = Grid().places()
    ports = [place.physical for place in places if place.kind == DRAM]
    others = {place.physical for place in places if place.kind in (ROUTER, SECURITY, L2CPU)}
    banks = (_names(ports[PORTS * bank : PORTS * (bank + 1)]) for bank in range(BANKS))
    views = (
        f"  - {{channel: {bank}, eth_endpoint: {[*ports]}, worker_endpoint: {[*ports]}, "
        f"address_offset: 0}}\n"
        for bank, ports in enumerate(_ENDPOINTS)
    )
    dram = (f"  - {bank}\n" for bank in banks)
    workers = (f"  {_names((x, y) for x in COLUMNS)[1:-1]},\n" for y in ROWS)
    return (
        f"arch_name: BLACKHOLE\ngrid: {{x_size: {GRID[0]}, y_size: {GRID[1]}}}\n"
        f"arc: {_names([ARC_AT])}\npcie: {_names(PCIE_AT)}\neth: []\n"
        f"dram:\n{''.join(dram)}"
        f"dram_views:\n{''.join(views)}dram_view_size: {_BANK_BYTES}\n"
        f"functional_workers: [\n{''.join(workers)}]\nharvested_workers: []\n"
        f"router_only: {_names(sorted(others - {*PCIE_AT}))}\n"
        f"worker_l1_size: {L1_SIZE}\ndram_bank_size: {_BANK_BYTES}\n"
        f"eth_l1_size: {_ETHERNET_BYTES}\n{_FEATURES}"
    )


def _names(places: Iterable[tuple[int, int]]) -> str:
    return f"[{', '.join(f'{x}-{y}' for x, y in places)}]"
