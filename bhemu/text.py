"""Text that came from a file, made safe to show; counts in words."""

_MOST, _WORD = 2000, 200  # characters that are shown of a message, and of one word in it


def printable(text: str, kept: str = "") -> str:
    """`text` with what does not print as itself escaped: controls, bidi, lone bytes; but `kept`.

    So a name in a file cannot move the cursor, start a line of its own or reorder what is shown.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else _escaped(ord(c)) for c in text)


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable_lines(text: str) -> str:
    """As `printable`, but line feeds and tabs are kept."""
    return printable(text, "\n\t")


def one_line(text: str) -> str:
    """`text` on one line, printable; long words are cut, and a text too long to read."""
    words = (_cut(printable(word), _WORD) for word in text.split())
    return _cut(" ".join(words), _MOST)


def joined(text: str) -> str:
    """The lines of `text` on one, with semicolons between them."""
    return "; ".join(" ".join(line.split()) for line in text.splitlines())


def times(number: int) -> str:
    """How often something was done, in words."""
    return ("never", "once")[number] if number < 2 else f"{number} times"


def counted(number: int, noun: str) -> str:
    """A number of things, in words: "1 word", "2 words", "3 accesses"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def _cut(text: str, most: int) -> str:
    """Text without its middle where it is longer than `most`."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}[...]{text[-most // 2 :]}"
