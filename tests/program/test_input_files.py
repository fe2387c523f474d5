"""Values written as text, arrays in files, and pictures of L1."""

import struct

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.program.input_files import encode_values, read_array, read_image


def test_values_are_packed_little_endian_without_gaps():
    values = ["u8:255", "i8:-1", "u16:0x1234", "i16:-2", "u32:0xDEADBEEF", "i32:-3", "f32:-1.5"]
    packed = struct.pack("<BbHhIif", 255, -1, 0x1234, -2, 0xDEADBEEF, -3, -1.5)
    assert encode_values(values, "x") == packed
    assert encode_values(["bf16:1.0", "f32:inf", "u8: 7"], "x") == b"\x80\x3f\0\0\x80\x7f\7"
    assert encode_values(["f32:0.1"], "x") == struct.pack("<f", 0.1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("4", "x: '4' is not a value"),
        ("u64:4", "is not a value"),
        (4, "x: 4 is not a value"),
        ("u32:", "'' is not a number"),
        ("u32:1.0", "'1.0' is not a number"),
        ("f32:one", "'one' is not a number"),
        ("u32:-1", "does not fit into u32"),
        ("u8:256", "does not fit into u8"),
        ("i16:32768", "does not fit into i16"),
    ],
)
def test_values_that_cannot_be_read(value, text):
    with pytest.raises(InputError) as caught:
        encode_values(["u8:1", value], "x")
    assert text in caught.value.message


def test_arrays_come_from_npy_and_bytes_from_anything(tmp_path):
    numbers, plain = tmp_path / "a.npy", tmp_path / "a.bin"
    np.save(numbers, np.arange(6, dtype=np.int16).reshape(2, 3))
    plain.write_bytes(b"\1\2\3")
    assert read_array(numbers, "bf16", "x").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert read_array(plain, "raw", "x").tolist() == [1, 2, 3]
    with pytest.raises(InputError, match=r"x: .*a\.bin is not \.npy"):
        read_array(plain, "bf16", "x")
    for path in (tmp_path / "no.npy", tmp_path / "no.bin"):
        with pytest.raises(InputError, match=r"x: .*no\.\w+ cannot be read"):
            read_array(path, "raw", "x")


def test_an_archive_holds_pieces_of_l1(tmp_path):
    path = tmp_path / "l1.npz"
    np.savez(path, in_addr=[0x100, 0x200], in_len=[2, 1], in_data=np.array([5, 6, 7], "u1"))
    l1 = read_image(path)
    assert (l1.shape, l1.dtype) == ((L1_SIZE,), np.uint8)
    assert l1[[0x100, 0x101, 0x200]].tolist() == [5, 6, 7]
    assert np.count_nonzero(l1) == 3


def test_a_plain_file_is_l1_from_address_0(tmp_path):
    path = tmp_path / "l1.bin"
    path.write_bytes(b"\1\2\3")
    l1 = read_image(path)
    assert (l1[:3].tolist(), np.count_nonzero(l1)) == ([1, 2, 3], 3)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"in_addr": [L1_SIZE], "in_len": [1]}, "1 bytes at 0x180000 are not inside L1"),
        ({"in_addr": [-1], "in_len": [1]}, "1 bytes at 0x-1 are not inside L1"),
        ({"in_addr": [0]}, "no array in_len"),
        ({"in_addr": [0], "in_len": [2]}, "do not describe the bytes of in_data"),
        ({"in_addr": [0, 0], "in_len": [2, -1]}, "do not describe the bytes of in_data"),
        ({"in_addr": [0, 0], "in_len": [1]}, "do not describe the bytes of in_data"),
        ({"in_addr": [0], "in_len": [1.0]}, "do not describe the bytes of in_data"),
        ({"in_addr": [[0]], "in_len": [[1]]}, "do not describe the bytes of in_data"),
    ],
)
def test_archives_that_do_not_describe_l1(tmp_path, arrays, text):
    path = tmp_path / "l1.npz"
    np.savez(path, in_data=np.zeros(1, np.uint8), **arrays)
    with pytest.raises(InputError, match=text):
        read_image(path)


def test_images_that_cannot_be_used(tmp_path):
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(L1_SIZE + 1))
    with pytest.raises(InputError, match=r"large\.bin: 1572865 bytes at 0x0 are not inside L1"):
        read_image(path)
    path = tmp_path / "fake.npz"
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match=r"fake\.npz: not an \.npz image"):
        read_image(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "no.npz")
