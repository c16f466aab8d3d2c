"""Web pages and e-books."""

from pathlib import Path

import pytest

pytest.importorskip("trafilatura")

from lightrag_jsonl import ConfigError, Document
from tests.readers.files import epub, read, read_content, replaced

PAGE = """<!doctype html><html><head><meta charset="gbk"><title>张骞</title>
<meta property="article:published_time" content="2024-05-06"></head><body>
<nav><a href="/">首页</a> <a href="/x">菜单</a></nav>
<article><h1>张骞出使西域</h1>{paragraphs}<h2>后来</h2><p>他于公元前126年回到长安。</p></article>
<footer>版权所有</footer><script>var x = 1</script></body></html>"""


def test_a_web_page_is_its_main_text() -> None:
    """With headings, title and date; without its menu; in the encoding that it has."""
    paragraphs = "<p>张骞于公元前138年奉汉武帝之命出使西域，途中被匈奴扣留十余年。</p>" * 3
    for number in range(6):
        paragraphs += (
            f"<p>第{number}段：他经过大宛、康居，到达大月氏，又到过大夏，历时十三年之久才回国。</p>"
        )
    found = read(PAGE.format(paragraphs=paragraphs).encode("gb18030"), "a.html")
    assert "# 张骞出使西域" in found.text and "## 后来" in found.text
    assert "菜单" not in found.text and "版权" not in found.text and "var x" not in found.text
    assert "张骞" in str(found.title) and found.date == "2024-05-06"


def test_a_short_page_keeps_all_its_text() -> None:
    """Where little text is, none of it is taken for decoration."""
    found = read("<p>Hello <b>world</b>,\n again.</p><script>x</script><h2>Hi</h2><p>End", "a.htm")
    assert found.text == "Hello world, again.\n\n## Hi\n\nEnd"


def test_a_short_article_comes_without_menus() -> None:
    """Where it is a small part of its page; links in its own sentences stay."""
    entries = "".join(
        f"<li><a href='/{n}'>第{n}栏目 section with news</a></li>" for n in range(120)
    )
    article = (
        "<h1>Prize</h1><p>Rosa Delmar of <a href='/x'>Leith</a> won the prize of the harbour for her "
        "chart of the coast. 她把奖金给了水手们。</p><ul><li><a href='/y'>Chart</a>, drawn in May</li></ul>"
    )
    for menu in (
        f"<ul>{entries}</ul>",
        f"<div><div>{entries}</div></div>",
        f"<nav>{entries}</nav>",
    ):
        page = f"<html><body>{menu}<div class='main'>{article}</div>{menu}</body></html>"
        text = read(page, "a.html").text
        assert "section" not in text and "她把奖金给了水手们" in text and "of Leith won" in text


def test_a_page_of_links_is_its_links() -> None:
    """Where little is left without them, they are the content."""
    entries = "".join(f"<li><a href='/{n}'>Chapter {n} of the log</a></li>" for n in range(40))
    assert "Chapter 39 of the log" in read(f"<h1>Log</h1><ul>{entries}</ul>", "a.html").text


@pytest.mark.slow
def test_a_large_page_is_read_in_full() -> None:
    """Where finding the main text would take minutes."""
    words = "words " * 200
    body = "".join(f"<p>{words}Paragraph {n} of a <b>long</b> page.</p>" for n in range(1_000))
    found = read(f"<html><body><nav>Menu</nav><h1>Log</h1>{body}</body></html>", "a.html")
    assert found.text.startswith(f"# Log\n\n{words}Paragraph 0 of a long page.\n\n{words}")
    assert found.text.endswith("Paragraph 999 of a long page.")


def test_a_page_cannot_make_the_reader_open_a_file(tmp_path: Path) -> None:
    """Entities of files stay what they are, in pages and in e-books."""
    (tmp_path / "secret").write_text("the password", encoding="utf-8")
    doctype = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
    page = f"{doctype}<html><body><p>Text &e; here</p></body></html>"
    assert "password" not in read(page, "a.html").text
    book = epub({"a": "<p>Text &e;</p>"})
    book = replaced(book, "OEBPS/text/a.xhtml", lambda part: doctype.encode() + part[38:])
    opf = "OEBPS/book.opf"
    book = replaced(book, opf, lambda part: doctype.encode() + part.replace(b"</dc", b"&e;</dc"))
    found = read(book, "a.epub")
    assert found.title == "西域记" and "password" not in "".join(found.pages or ())


def test_the_chapters_of_a_book_are_pages_in_reading_order() -> None:
    """Each with its heading; blank ones, and files that are no chapters, are left out."""
    book = {
        "two": "<h1>第一章</h1><p>张骞从长安<em>出发</em>。</p><ul><li>一</li><li>二</li></ul>",
        "blank": "<p> </p>",
        "one": "<h2>Chapter Two</h2><p>He\nreturned<br/>home.</p><pre>a  b</pre>",
    }
    assert read(epub(book), "a.epub") == Document(
        "",
        title="西域记",
        pages=(
            "# 第一章\n\n张骞从长安出发。\n\n- 一\n\n- 二",
            "## Chapter Two\n\nHe returned\n\nhome.\n\na  b",
        ),
    )


def test_a_book_with_drm_is_refused() -> None:
    """Encrypted fonts alone do not matter."""
    chapters = {"a": "<p>Text</p>"}
    fonts = '<encryption><CipherReference URI="OEBPS/font.otf"/></encryption>'
    assert read(epub(chapters, encryption=fonts), "a.epub").pages == ("Text",)
    locked = fonts.replace("font.otf", "text/a.xhtml")
    with pytest.raises(ConfigError, match=r"a\.epub is encrypted \(DRM\)"):
        read(epub(chapters, encryption=locked), "a.epub")


def test_a_book_without_chapters_is_empty() -> None:
    """It says so."""
    with pytest.raises(ConfigError, match=r"a\.epub is empty"):
        read(epub({}), "a.epub")


@pytest.mark.parametrize("page", [b"", b" \n", b"<!-- moved -->", b"<!doctype html>", b"<?php ?>"])
def test_a_page_without_an_element_is_empty(page: bytes) -> None:
    """Not damaged."""
    with pytest.raises(ConfigError, match=r"a\.html is empty"):
        read(page, "a.html")


ARTICLE = "".join(
    f"<p>In {1900 + year} the keeper of the quay trimmed lamp {year}, and no ship ran aground until the spring.</p>"
    for year in range(6)
)


def test_headings_lists_and_loose_words_of_a_plain_page_are_read() -> None:
    """Without any element that says where the article is, and with headings that are links."""
    inner = (
        "<h1>Keeper</h1><p>Dora Finch keeps the lamp of the quay, and she writes a log of every night.</p>"
        "<h2><a href='#oil'>Oil</a><a class='headerlink' href='#oil'>¶</a></h2>"
        "<ul><li>Rape oil</li><li>鲸油</li></ul><dl><dt>Wick</dt><dd>A cord of cotton.</dd></dl>"
        "<div>Loose words in a block.</div><h2>Hours</h2><ol><li>Light at dusk</li></ol>"
        "<pre>lamp on\n# not a heading</pre><table><tr><th>Month</th><th>Oil</th></tr><tr><td>May</td><td>4</td></tr>"
        f"</table>{ARTICLE}<ul><li>Last point</li></ul>"
    )
    for page in (
        inner,
        f'<div class="markdown-body">{inner}</div>',
        f'<div class="WordSection1">{inner}</div>',
        f'<div class="document"><div class="body" role="main"><section>{inner}</section></div></div>',
        f'<div id="main-content" class="wiki-content">{inner}</div>',
    ):
        text = read(
            f"<html><head><title>Keeper</title></head><body>{page}</body></html>", "a.html"
        ).text
        for words in ("# Keeper", "## Oil\n", "- Rape oil", "- 鲸油", "Wick", "A cord of cotton.", "Loose words",
                      "## Hours", "- Light at dusk", "lamp on\n# not a heading", "| May | 4 |", "- Last point"):  # fmt: skip
            assert words in text, (words, page[:60])
        assert "¶" not in text


def test_an_article_is_kept_beside_many_links_and_an_imprint() -> None:
    """Neither the links nor the imprint, which are longer than some of its lines, are the page."""
    links = "".join(
        f'<li><a href="/{n}">A story of the harbour, number {n}</a></li>' for n in range(60)
    )
    imprint = (
        "Copyright Quay Press, 12 Quay Street, Leith, all rights reserved, telephone 0131 123 4567."
    )
    page = f'<body><div class="page"><article>{ARTICLE}</article><ul>{links}</ul></div><div>{imprint}</div></body>'
    text = read(f"<html><head><title>Lamps</title></head>{page}</html>", "a.html").text
    assert "lamp 0" in text and "lamp 5" in text and "number 3" not in text


def test_what_a_page_leaves_out_is_noted() -> None:
    """How much, with an example."""
    banner = "".join(
        f"<p>We value your privacy in all {n} cases, said our partner.</p>" for n in range(20)
    )
    page = f"<html><body><article>{ARTICLE}</article><footer>{banner}</footer></body></html>"
    content = read_content(page, "a.html")
    assert "privacy" not in content.document.text
    (note,) = content.notes
    assert "characters beside the main text are left out, such as 'We value your privacy" in note
