"""The lines of a PROGRAM.toml that hold a table, a key or a value of an array."""

import re
from pathlib import Path

_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?")
_VALUE = re.compile(r'"[^"]*"|[^\s,\[\]#]+')


class TomlLines:
    """Line numbers (from 1) of one file."""

    def __init__(self, path: Path) -> None:
        self._lines = path.read_text().splitlines()

    def table(self, name: str, number: int = 0) -> int:
        """The header of the `number`-th table `name`; 1 if there is none."""
        for line, text in enumerate(self._lines, 1):
            found = _HEADER.match(text)
            if found and found[1] == name:
                if number == 0:
                    return line
                number -= 1
        return 1

    def key(self, name: str, number: int, key: str) -> int:
        """A key of a table; the table's header if it lacks the key."""
        header = self.table(name, number)
        for line in range(header, len(self._lines)):
            text = self._lines[line]
            if _HEADER.match(text):
                break
            if re.match(rf"\s*{re.escape(key)}\s*=", text):
                return line + 1
        return header

    def written(self, name: str, number: int, key: str, index: int) -> tuple[int, str]:
        """The line of a value of an array, and its text; "" if there is none."""
        line = self.key(name, number, key)
        left = index
        text = self._lines[line - 1].partition("=")[2]
        while True:
            values = _VALUE.findall(text.partition("#")[0])
            if left < len(values):
                return line, values[left].strip('"')
            if "]" in text.partition("#")[0] or line >= len(self._lines):
                return line, ""
            left -= len(values)
            text = self._lines[line]
            line += 1
