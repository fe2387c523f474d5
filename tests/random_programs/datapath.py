"""Program pieces that move data: L1 to Src or Dst, and every Dst cell back to L1."""

from bhemu.oracle.libttsim import DONE
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from random_programs.thread import Config, Thread

CONFIGURED, FILLED, COMPUTED = 0x200, 0x204, 0x208  # flag words in L1
INPUT, SECOND, OUTPUT = 0x40000, 0x80000, 0x100000
TILE = 1024  # datums of one UNPACR here: 64 rows
FP32, FP16, TF32, BF16, INT32, UINT16 = 0, 1, 4, 5, 8, 9

_SEC = (
    (
        cf.THCON_SEC0_REG0_TileDescriptor,
        cf.THCON_SEC0_REG2_Out_data_format,
        cf.THCON_SEC0_REG2_Throttle_mode,
        cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0,
        cf.THCON_SEC0_REG3_Base_address,
        cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride,
    ),
    (
        cf.THCON_SEC1_REG0_TileDescriptor,
        cf.THCON_SEC1_REG2_Out_data_format,
        cf.THCON_SEC1_REG2_Throttle_mode,
        cf.THCON_SEC1_REG2_Disable_zero_compress_cntx0,
        cf.THCON_SEC1_REG3_Base_address,
        cf.UNP1_ADDR_CTRL_ZW_REG_1_Zstride,
    ),
)
_UNCOMPRESSED = 1 << 4
_X, _Y = 256, 4  # one step of the Z counter is a tile of 1024 datums


def unpacker(
    config: Config, which: int, source: int, target: int, at: int, *, to_dst: bool = False
) -> None:
    """Unpacker 0 or 1: 1024 datums of format `source` from L1 `at`, as `target` into Src or Dst."""
    descriptor, out, throttle, plain, base, stride = _SEC[which]
    config.set(descriptor, _X << 16 | _UNCOMPRESSED | source & 15)
    config.words[descriptor.word + 1] = 1 << 16 | _Y  # z dimension, y dimension
    config.set(out, target & 15).set(throttle, 2).set(plain, 1)
    config.set(base, (at >> 4) - 1)
    config.set(stride, 4 * TILE if to_dst else 0)
    if which == 0:
        config.set(cf.THCON_SEC0_REG5_Dest_cntx0_address, 64)
        config.set(cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, _X)
        config.set(cf.THCON_SEC0_REG7_Offset_address, 0)
        config.set(cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0, int(to_dst))


def start_unpackers(thread: Thread, *, to_dst: bool) -> None:
    """Counters and thread configuration of thread 0 for 1024 datums per UNPACR."""
    thread.setc16(
        {
            tf.SRCA_SET_SetOvrdWithAddr: int(not to_dst),
            tf.UNPACK_MISC_CFG_CfgContextOffset_0: 0,
        }
    )
    thread.push("SETADCXY", bit_mask=15, cnt_set_mask=3)
    thread.push("SETADCZW", bit_mask=15, cnt_set_mask=3)
    for unpacker_bit in (1, 2):
        thread.push("SETADCXX", cnt_set_mask=unpacker_bit, x_end2=TILE - 1)


NEXT_TILE = 1 << 0 | 1 << 4  # UNPACR addr_mode: Z counter of both channels += 1


def fill_dst(thread: Thread, at: int, tiles: int = 8) -> None:
    """Thread 0: 32-bit words from L1 `at` straight to Dst, 64 32-bit rows per tile."""
    config = Config()
    unpacker(config, 0, FP32, FP32, at, to_dst=True)
    config.set(cf.ALU_ACC_CTRL_Fp32_enabled, 1)
    thread.configure(config)
    start_unpackers(thread, to_dst=True)
    for _ in range(tiles):
        thread.push("UNPACR", last=1, ovrd_thread_id=1, addr_mode=NEXT_TILE)
    thread.sync()


def packer(config: Config, source: int, target: int, at: int, *, wide: bool) -> None:
    """The packer: Dst (32-bit cells when `wide`) as `source`, written as `target` to L1 `at`."""
    size = {0: 4, 1: 2, 2: 1, 3: 1}[source & 3]
    config.set(cf.ALU_FORMAT_SPEC_REG2_Dstacc, source & 15)
    config.set(cf.STACC_RELU_ApplyRelu, 0)
    config.set(cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride, 16 * size)
    config.set(cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride, 0)
    config.set(cf.PCK_DEST_RD_CTRL_Read_32b_data, int(wide))
    config.set(cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0, 0)
    config.set(cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF)
    config.set(cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16)
    config.set(cf.THCON_SEC0_REG1_Exp_section_size, 0)
    config.set(cf.THCON_SEC0_REG1_L1_Dest_addr, (at >> 4) - 1)
    config.set(cf.THCON_SEC0_REG1_Disable_zero_compress, 1)
    config.set(cf.THCON_SEC0_REG1_In_data_format, source & 15)
    config.set(cf.THCON_SEC0_REG1_Out_data_format, target & 15)
    config.set(cf.THCON_SEC0_REG1_Pack_L1_Acc, 0)
    config.set(cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset, 0)


def pack_rows(thread: Thread, rows: int) -> None:
    """Thread 2: PACR over the first `rows` rows (a multiple of 4), four at a time, as one tile."""
    thread.push("SETADCXY", bit_mask=15, cnt_set_mask=4)
    thread.push("SETADCZW", bit_mask=15, cnt_set_mask=4)
    thread.push("SETADCXX", cnt_set_mask=4, x_end2=15)
    thread.setc16({tf.ADDR_MOD_PACK_SEC0_YsrcIncr: 4})
    if rows > 4:
        with thread.repeat(rows // 4 - 1):
            thread.push("PACR")
    thread.push("PACR", last=1)
    thread.sync()


def dump_dst(thread: Thread, at: int, rows: int = 1024) -> None:
    """Thread 2: the first `rows` rows of 16-bit cells as they are stored; invalid rows give 0."""
    config = Config()
    packer(config, UINT16, UINT16, at, wide=False)
    thread.configure(config)
    pack_rows(thread, rows)


def image(threads: list[Thread], data: dict[int, bytes]) -> bytes:
    """The L1 image: code of the three threads and pieces of data by address."""
    pieces = {0x10000 * (thread.index + 1): thread.code() for thread in threads} | data
    end = max(address + len(piece) for address, piece in pieces.items())
    out = bytearray(end)
    for address, piece in pieces.items():
        out[address : address + len(piece)] = piece
    return bytes(out)


def finish(thread: Thread) -> None:
    """The done word of this thread."""
    thread.done(*DONE[thread.index])
