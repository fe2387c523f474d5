"""A plugin that counts the bytes that PACR writes to L1, by their format and by source line.

bhemu run elfs/matmul --plugin examples/packed_bytes.py
"""

from collections import Counter


def install(machine):
    """Ask for every PACR of every tile; what is returned is called when the run has ended."""
    by_format, by_line = Counter(), Counter()

    def pack(word):
        does = word.transfer  # None of a PACR that packs nothing
        if does is not None:
            size = does.end - does.first
            by_format[does.l1_format] += size
            by_line[word.place.partition(" in ")[2]] += size

    machine.on_word("PACR", pack)

    def report():
        for kind, size in by_format.most_common():
            print(f"{size} bytes packed as {kind}")
        for line, size in by_line.most_common(3):
            print(f"{size:>10}  {line}")

    return report
