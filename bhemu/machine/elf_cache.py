"""The ELFs of a program, read and checked once for all of its cores, tiles and launches."""

from collections.abc import Iterable
from pathlib import Path

from bhemu.machine import precompile
from bhemu.program.loader import Image, block, read_elf, relocated


class ElfCache:
    """ELFs, each read once, and kernels moved to each place once; kept, it serves many launches."""

    def __init__(self) -> None:
        self._images: dict[Path, Image] = {}
        self._moved: dict[tuple[Path, int], bytes] = {}

    def image(self, path: Path) -> Image:
        """The checked ELF at `path`."""
        if path not in self._images:
            self._images[path] = read_elf(path)
        return self._images[path]

    def read(self, paths: Iterable[Path]) -> None:
        """Read and check the ELFs at `paths`; compiling what new ones use may begin."""
        new = [self.image(path) for path in paths if path not in self._images]
        if new:
            precompile.start(precompile.missing(precompile.opcodes(new), new))

    def moved(self, image: Image, offset: int) -> bytes:
        """What goes to L1 of an ELF that lies `offset` bytes from where it was linked."""
        key = (image.path, offset)
        if key not in self._moved:
            self._moved[key] = block(relocated(image, offset))[1]
        return self._moved[key]
