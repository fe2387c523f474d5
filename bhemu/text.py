"""Text that came from a file, made safe to show."""

_MOST = 4000


def printable(text: str) -> str:
    """`text` with what does not print as itself escaped: controls, bidi, lone bytes.

    So a name in a file cannot move the cursor, start a line of its own or reorder what is shown.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in text)


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable_lines(text: str) -> str:
    """As `printable`, but line feeds and tabs are kept."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(ord(c)) for c in text)


def one_line(text: str) -> str:
    """`text` on one line, printable, and cut where it is longer than anyone reads."""
    line = printable(" ".join(text.split()))
    if len(line) <= _MOST:
        return line
    return f"{line[: _MOST // 2]} [...] {line[-_MOST // 2 :]}"
