"""A page is one file: nothing a text holds becomes markup, and nothing is loaded."""

import html.parser
import json

from bhemu.pictures.html import data, page, table, text

HOSTILE = '</script><img src=x onerror="alert(1)">\u202e\n'


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.held = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.held += data


def test_no_text_becomes_markup() -> None:
    body = f"<p>{text(HOSTILE)}</p>{table(['a', HOSTILE], [[1, HOSTILE], [None, 2.5]], 'runs')}"
    found = Tags()
    found.feed(page(HOSTILE, body, script="let x = 1;").decode())
    assert "img" not in found.tags
    assert found.tags.count("script") == 1
    assert "\u202e" not in found.held


def test_data_of_a_script_ends_where_it_ends() -> None:
    written = data("rows", [HOSTILE, 1, None])
    assert written.count("</") == 1
    inside = written.partition(">")[2].rpartition("</script>")[0]
    assert json.loads(inside) == [HOSTILE, 1, None]


def test_a_page_loads_nothing() -> None:
    shown = page("title", "").decode()
    assert "default-src 'none'" in shown
    assert "http://" not in shown and "https://" not in shown
