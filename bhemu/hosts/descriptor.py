"""soc_descriptor.yaml: the chip as a host sees it.

In directory mode a host uses these coordinates as they are on NoC 0 and mirrors those of DRAM, and
only those, within the grid for NoC 1. In the chip's own grid of 17 x 12 some mirrored ports of DRAM
fall on Tensix tiles. So the grid here is 40 x 36 and DRAM stands at its translated coordinates:
mirrored, its ports lie in columns 21 and 22, where nothing else is.
"""

from collections.abc import Iterable

from bhemu.memmap import L1_SIZE

GRID = (40, 36)
COLUMNS, ROWS = (*range(1, 8), *range(10, 17)), range(2, 12)
_BANKS, _PORTS, _HALF = 8, 3, 4
_BANK_BYTES = (1 << 32) - (16 << 20)  # the last 16 MiB hold the DRAM tile's own registers
_ETHERNET_BYTES = 512 << 10
# The port that firmware uses, by NoC: two ports, so that the NoCs do not meet.
_ENDPOINTS = ((2, 1), (0, 1), (0, 1), (0, 1), (2, 1), (2, 1), (2, 1), (2, 1))
_PCIE = ((2, 0), (11, 0))
_ARC = (8, 0)
_ROUTERS = (
    *((x, 0) for x in (1, *range(3, 8), 10, *range(12, 17))),
    *((8, y) for y in range(1, 12)),
)
_FEATURES = """\
features:
  noc: {translation_id_enabled: true}
  unpacker: {version: 2, inline_srca_trans_without_srca_trans_instr: true}
  math: {dst_size_alignment: 32768}
  packer: {version: 2}
  overlay: {version: 2}
"""


def dram_port(bank: int, port: int) -> tuple[int, int]:
    """The translated coordinates of a port of a bank."""
    return 17 + bank // _HALF, 12 + _PORTS * (bank % _HALF) + port


def soc_descriptor() -> str:
    """The text of the file: 140 Tensix tiles, eight banks of DRAM, no Ethernet."""
    banks = (_names(dram_port(bank, port) for port in range(_PORTS)) for bank in range(_BANKS))
    views = (
        f"  - {{channel: {bank}, eth_endpoint: {[*ports]}, worker_endpoint: {[*ports]}, "
        f"address_offset: 0}}\n"
        for bank, ports in enumerate(_ENDPOINTS)
    )
    dram = (f"  - {bank}\n" for bank in banks)
    workers = (f"  {_names((x, y) for x in COLUMNS)[1:-1]},\n" for y in ROWS)
    return (
        f"arch_name: BLACKHOLE\ngrid: {{x_size: {GRID[0]}, y_size: {GRID[1]}}}\n"
        f"arc: {_names([_ARC])}\npcie: {_names(_PCIE)}\neth: []\n"
        f"dram:\n{''.join(dram)}"
        f"dram_views:\n{''.join(views)}dram_view_size: {_BANK_BYTES}\n"
        f"functional_workers: [\n{''.join(workers)}]\nharvested_workers: []\n"
        f"router_only: {_names(_ROUTERS)}\n"
        f"worker_l1_size: {L1_SIZE}\ndram_bank_size: {_BANK_BYTES}\n"
        f"eth_l1_size: {_ETHERNET_BYTES}\n{_FEATURES}"
    )


def _names(places: Iterable[tuple[int, int]]) -> str:
    return f"[{', '.join(f'{x}-{y}' for x, y in places)}]"
