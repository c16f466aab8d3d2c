"""Books, notes, subtitles, calendars, OpenDocument, RTF, messages and saved pages: words kept at their places."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("odfdo")

import odfdo

from lightrag_jsonl import ConfigError, FileLimits
from tests.readers.files import read, read_content, replaced, saved, zipped
from tests.readers.outlook import BODY, SENDER, SENDER_ADDRESS, SUBJECT, outlook_message

SMALL = FileLimits(characters=10_000, cells=1_000, pages=10)


def open_text() -> bytes:
    """A text of OpenDocument with a heading, a list, a table and a note."""
    file = odfdo.Document("text")
    file.body.clear()
    file.body.append(odfdo.Header(1, "The quay 码头"))
    file.body.append(odfdo.Paragraph("Dora Finch keeps the log."))
    file.body.append(odfdo.List(["Rope of hemp", "Hook of iron"]))
    table = odfdo.Table("Stock", width=2, height=2)
    for column, (name, value) in enumerate((("Item", "Lamp"), ("Count", "12"))):
        table.set_value((column, 0), name)
        table.set_value((column, 1), value)
    file.body.append(table)
    noted = odfdo.Paragraph("It burned")
    noted.insert_note(after="burned", note_id="n1", citation="1", body="In the winter of 1902.")
    file.body.append(noted)
    return saved(file)


def open_sheet(*rows: tuple[object, ...]) -> bytes:
    file = odfdo.Document("spreadsheet")
    file.body.clear()
    table = odfdo.Table("Boats", width=len(rows[0]), height=len(rows))
    for line, row in enumerate(rows):
        for column, value in enumerate(row):
            table.set_value((column, line), value)
    file.body.append(table)
    return saved(file)


def test_a_text_of_opendocument_keeps_its_words() -> None:
    """Headings with their numbers, points of lists, rows of tables, and notes."""
    text = read(open_text(), "a.odt").text
    assert text.startswith("# 1. The quay 码头\n\nDora Finch keeps the log.")
    for words in ("Rope of hemp", "Hook of iron", "| Lamp | 12", "In the winter of 1902."):
        assert words in text


def with_content(*xml: str, **objects: str) -> bytes:
    """A text with this content, and with these objects in it."""
    space = "".join(
        f' xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for prefix, name in (
            ("office", "office"),
            ("text", "text"),
            ("table", "table"),
            ("draw", "drawing"),
            ("style", "style"),
            ("chart", "chart"),
        )
    )
    space += (
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    )
    head = f"<office:document-content{space}>"
    body = f"<office:body><office:text>{xml[-1]}</office:text></office:body>"
    content = "".join([head, *xml[:-1], body, "</office:document-content>"])
    parts = {f"{name}/content.xml": text.replace("?", space, 1) for name, text in objects.items()}
    return zipped({"content.xml": content, **parts})


def test_words_of_opendocument_are_whole_and_in_order() -> None:
    """Words with letters in bold, deleted words, ruby, spaces, tabs and breaks."""
    text = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        "<text:p>The <text:span>lan</text:span>tern<text:s text:c='2'/>hung<text:tab/>low<text:line-break/>"
        "<text:ruby><text:ruby-base>灯</text:ruby-base><text:ruby-text>dēng</text:ruby-text></text:ruby>\n   tonight."
        "</text:p>"
    )
    assert read(with_content(text), "a.odt").text == "The lantern  hung\tlow\n灯 tonight."


def test_lists_of_opendocument_have_the_numbers_that_are_shown() -> None:
    """By style and level; a list that goes on keeps the count; bullets are none."""
    styles = (
        '<office:automatic-styles><text:list-style style:name="L"><text:list-level-style-number '
        'text:level="1" style:num-format="I" style:num-suffix="."/><text:list-level-style-number '
        'text:level="2" style:num-format="1" style:num-suffix=")" text:display-levels="2" text:start-value="3"/>'
        "</text:list-style></office:automatic-styles>"
    )

    def item(text: str, inner: str = "") -> str:
        return f"<text:list-item><text:p>{text}</text:p>{inner}</text:list-item>"

    inner = f"<text:list>{item('oil')}{item('wick')}</text:list>"
    content = (
        f'<text:list text:style-name="L">{item("Lamp", inner)}{item("Rope")}</text:list><text:p>So:</text:p>'
        f'<text:list text:style-name="L" text:continue-numbering="true">{item("Hook")}</text:list>'
        f"<text:list>{item('Bell')}</text:list>"
    )
    assert read(with_content(styles, content), "a.odt").text.split("\n\n") == [
        *("I. Lamp", "  I.3) oil", "  I.4) wick", "II. Rope", "So:", "III. Hook", "- Bell")
    ]


def test_what_stands_beside_the_text_of_opendocument_is_read() -> None:
    """Comments with their writers, text boxes, formulas, and the numbers of charts."""
    comment = (
        "<office:annotation><dc:creator>Cid</dc:creator><dc:date>2024-05-06</dc:date><text:p>Which year?</text:p>"
        "</office:annotation>"
    )
    content = (
        f"<text:p>It burned{comment} once.</text:p>"
        "<text:p>So <draw:frame><draw:object xlink:href='./F'/></draw:frame> holds.</text:p>"
        "<text:p><draw:frame><draw:text-box><text:p>In the box.</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:object xlink:href='./C'/></draw:frame></text:p>"
    )
    formula = "<math><semantics><mi>x</mi><annotation>a over b</annotation></semantics></math>"
    chart = (
        "<office:document-content?><office:body><chart:title><text:p>Oil</text:p></chart:title><table:table>"
        "<table:table-row><table:table-cell><text:p>May</text:p></table:table-cell><table:table-cell>"
        "<text:p>12</text:p></table:table-cell></table:table-row></table:table></office:body></office:document-content>"
    )
    assert read(with_content(content, F=formula, C=chart), "a.odt").text.split("\n\n") == [
        *("It burned once.", "Comment by Cid: Which year?", "So a over b holds."),
        *("In the box.", "Oil", "| May | 12 |"),
    ]


def test_damage_in_opendocument_costs_the_damaged_place() -> None:
    """Properties that are no XML, an id that is there twice, and content that ends too early."""
    broken = replaced(open_text(), "meta.xml", lambda part: part.replace(b"</office:meta>", b"<"))
    twice = with_content("<text:list xml:id='a'/><text:p xml:id='a'>The lamp.</text:p>")
    cut = replaced(open_text(), "content.xml", lambda part: part[: part.index(b"It burned") + 9])
    assert "Dora Finch keeps the log." in read(broken, "a.odt").text
    assert read(twice, "a.odt").text == "The lamp."
    assert "Rope of hemp" in read(cut, "a.odt").text
    assert read_content(cut, "a.odt").notes == ("the part content.xml is damaged",)
    assert read_content(twice, "a.odt").notes == ()
    with pytest.raises(ConfigError, match=r"is not a valid \.odt file: it has no content"):
        read(zipped({"content.xml": "<a"}), "a.odt")


def test_a_sheet_of_opendocument_has_names_and_values() -> None:
    """A page for each sheet; the blank rows that LibreOffice writes to the end of the sheet are none."""
    book = open_sheet(("Boat", "Crew"), ("Petrel", 4), ("海燕号", 7))
    rest = (
        b'<table:table-row table:number-rows-repeated="1048500">'
        b'<table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>'
    )
    saved_by_office = replaced(
        book, "content.xml", lambda part: part.replace(b"</table:table>", rest)
    )

    pages = ("# Boats\n\nBoat: Petrel; Crew: 4\n\nBoat: 海燕号; Crew: 7",)
    assert read(book, "a.ods").pages == pages
    assert read(saved_by_office, "a.ods", limits=SMALL).pages == pages


@pytest.mark.parametrize(
    "repetition",
    [b'row table:number-rows-repeated="900000"', b'cell table:number-columns-repeated="900000"'],
)
def test_repeated_cells_count(repetition: bytes) -> None:
    """A value that a file repeats without end is beyond the limit of cells, in sheets and in texts."""
    place = repetition.partition(b" ")[0]

    def bomb(part: bytes) -> bytes:
        return part.replace(b"<table:table-" + place, b"<table:table-" + repetition, 1)

    for data, name in (
        (open_sheet(("Boat", "Crew"), ("Petrel", 4)), "a.ods"),
        (open_text(), "a.odt"),
    ):
        with pytest.raises(ConfigError, match=r"has more than 1,000 cells"):
            read(replaced(data, "content.xml", bomb), name, limits=SMALL)


def test_slides_of_opendocument_are_read_as_those_of_powerpoint() -> None:
    """With number and title; short slides share a page, and the field with a page's number is no text."""

    def frame(words: str, **attributes: str) -> odfdo.Frame:
        size, position = ("5cm", "2cm"), ("1cm", "1cm")
        return odfdo.Frame.text_frame(words, size=size, position=position, **attributes)

    deck = odfdo.Document("presentation")
    deck.body.clear()
    for number, words in enumerate(("A new crane", "新的起重机", "It lifts 40 tons. " * 150), 1):
        page = odfdo.DrawPage(str(number), name=words[:9])
        page.append(frame(words.strip()))
        page.append(frame(f"Berth {number}", presentation_class="title"))
        numbered = odfdo.Element.from_tag(
            "<text:p><text:page-number>&lt;number&gt;</text:page-number></text:p>"
        )
        page.append(numbered)
        deck.body.append(page)

    first, second, third = read(saved(deck), "a.odp").pages
    assert first == "# Slide 1: Berth 1\n\nA new crane\n\n# 幻灯片 2: Berth 2\n\n新的起重机"
    assert second == ""
    assert third.startswith("# Slide 3: Berth 3\n\nIt lifts 40 tons.")


def test_opendocument_that_cannot_be_read_says_why() -> None:
    """With a password, no package at all, or one that unpacks to far more than it is."""
    entry = b'<m:file-entry xmlns:m="x"><m:encryption-data/></m:file-entry></manifest:manifest>'
    locked = replaced(
        open_text(),
        "META-INF/manifest.xml",
        lambda part: part.replace(b"</manifest:manifest>", entry),
    )
    large = replaced(open_text(), "content.xml", lambda part: part + b" " * (20 << 20))
    for data, reason in (
        (locked, "is encrypted: save it without a password"),
        (b"PK, but no archive", r"is not a valid \.odt file"),
        (large, r"unpacks to [\d,]+ bytes, more than"),
    ):
        with pytest.raises(ConfigError, match=rf"a\.odt {reason}"):
            read(data, "a.odt")


def test_rich_text_is_its_words() -> None:
    """In its encoding and beyond; pictures are noted, the title is in its properties."""
    source = (
        r"{\rtf1\ansi\ansicpg1252{\info{\title Log of the quay}}{\fonttbl{\f0 Times;}}\b Dora\b0  keeps "
        r"caf\'e9 hours \u30721?\u22836?.\par {\pict\pngblip 89504e47}It burned in 1902.}"
    )
    content = read_content(source, "a.rtf")

    assert content.document.text == "Dora keeps café hours 码头.\nIt burned in 1902."
    assert content.document.title == "Log of the quay"
    assert content.notes == ("pictures are left out",)
    with pytest.raises(ConfigError, match="is not an RTF file"):
        read("Dora keeps hours.", "a.rtf")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"\u55357?\u56832?", "😀"),
        (r"\u-10179?\u-8704?", "😀"),
        (r"\u1114112?", "\ufffd"),
        (r"\u-99999?", "\ufffd"),
        (rf"\u{'7' * 5_000}?", "\ufffd"),
    ],
)
def test_characters_of_rich_text_are_whole_or_replaced(written: str, text: str) -> None:
    """Halves make one character; a number that is none costs itself, not the file."""
    content = read(
        rf"{{\rtf1\ansi {written} 码头 Dora keeps hours.}}".encode("gbk", "ignore"), "a.rtf"
    )
    assert content.text.startswith(text) and content.text.endswith("Dora keeps hours.")


def test_subtitles_are_what_is_said_below_its_times() -> None:
    """In running text: no numbers, no tags; who speaks begins a paragraph."""
    srt = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}<i>The lamp of the quay\r\n\r\n"
        "2\r\n00:00:02,100 --> 00:00:04,000\r\nburned</i> in <font color='red'>1902</font>.\r\n\r\n"
        "3\r\n00:02:10,000 --> 00:02:12,000\r\n码头的灯灭了。\r\n"
    )
    vtt = (
        "WEBVTT\n\nNOTE a comment\n\n00:00:01.000 --> 00:00:02.000\n<v Dora>Is it lit?\n\n"
        "00:00:02.500 --> 00:00:03.000\n<v Cid>No &amp; never.\n"
    )

    assert read(srt, "a.srt").text == (
        "## 0:00:01\n\nThe lamp of the quay burned in 1902.\n\n## 0:02:10\n\n码头的灯灭了。"
    )
    assert read(vtt, "a.vtt").text == "## 0:00:01\n\nDora: Is it lit?\n\nCid: No & never."
    with pytest.raises(ConfigError, match=r"is not a valid \.srt file"):
        read("The lamp burned.", "a.srt")


def test_subtitles_without_numbers_are_read() -> None:
    """To the last."""
    cues = [f"00:00:0{second},000 --> 00:00:0{second},900\nlamp {second}" for second in (1, 2, 3)]
    assert read("\n\n".join(cues), "a.srt").text == "## 0:00:01\n\nlamp 1 lamp 2 lamp 3"


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
X-WR-CALNAME:Quay
BEGIN:VEVENT
SUMMARY:Lamp is lit 点灯
DTSTART:20260506T190000Z
LOCATION:Leith
ORGANIZER;CN=Dora Finch:mailto:dora@quay.example
ATTENDEE;CN=Cid:mailto:cid@quay.example
ATTENDEE:mailto:bob@quay.example
DESCRIPTION:Bring oil.\\nAnd a wick.
END:VEVENT
BEGIN:VEVENT
SUMMARY:Whenever
DTSTART:nonsense
END:VEVENT
BEGIN:VTODO
SUMMARY:Paint the crane
DUE;VALUE=DATE:20260101
END:VTODO
END:VCALENDAR
"""


def test_events_of_a_calendar_are_paragraphs() -> None:
    """With time, place and people; a date that is none costs nothing but itself."""
    document = read(CALENDAR, "a.ics")
    assert document.title == "Quay"
    assert sorted(document.text.split("\n\n")) == [
        "Lamp is lit 点灯; Start: 2026-05-06 19:00+00:00; Location: Leith; Organizer: Dora Finch; "
        "Attendees: Cid, bob@quay.example; Description: Bring oil. And a wick.",
        "Paint the crane; Due: 2026-01-01",
        "Whenever; Start: nonsense",
    ]
    with pytest.raises(ConfigError, match=r"is not a valid \.ics file"):
        read("The lamp is lit on Monday.", "a.ics")


def test_a_part_of_a_calendar_that_is_broken_costs_itself() -> None:
    """A zone, or an event, which is noted."""
    zone = "BEGIN:VTIMEZONE\nTZID:Leith\nBEGIN:STANDARD\nRDATE;VALUE=DATE:never\n(\nEND:STANDARD\nEND:VTIMEZONE\n"
    event = "BEGIN:VEVENT\n({}\nEND:VEVENT\n"
    broken = CALENDAR.replace("BEGIN:VEVENT", f"{zone}{event}BEGIN:VEVENT", 1)
    content = read_content(broken, "a.ics")
    assert content.document.text == read(CALENDAR, "a.ics").text
    assert len(content.notes) == 1


def test_notes_of_evernote_stand_below_their_titles() -> None:
    """Their pages are texts, with their headings."""
    notes = "".join(
        f"<note><title>{title}</title><content><![CDATA[<en-note>{page}</en-note>]]></content></note>"
        for title, page in (
            ("Lamp", "<h1>Oil</h1><div>Dora buys it.<br/>On Mondays.</div>"),
            ("灯", "<ul><li>油</li></ul>"),
        )
    )
    text = read(f"<?xml version='1.0'?><en-export>{notes}</en-export>", "a.enex").text
    assert text == "## Lamp\n\n# Oil\n\nDora buys it.\n\nOn Mondays.\n\n## 灯\n\n- 油"
    for empty in ("", "<en-export/>"):
        with pytest.raises(ConfigError, match=r"a\.enex is empty"):
            read(empty, "a.enex")


def test_a_book_in_one_file_has_its_chapters_as_headings() -> None:
    """Poems and notes too; pictures and descriptions are no text."""
    book = (
        '<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><title-info>'
        "<book-title>码头 Log</book-title><date>1902</date></title-info></description><body><section>"
        "<title><p>The lamp</p></title><p>Dora <emphasis>lit</emphasis> it.</p><poem><stanza><v>O light</v>"
        "</stanza></poem></section></body><body name='notes'><section><p>A note.</p></section></body>"
        "<binary>QUFBQQ==</binary></FictionBook>"
    )
    document = read(book, "a.fb2")
    assert document.text == "## The lamp\n\nDora lit it.\n\nO light\n\nA note."
    assert (document.title, document.date) == ("码头 Log", "1902")


def test_a_message_of_outlook_is_read_as_mail() -> None:
    """Its people, subject, text and the names of its files."""
    texts = {
        SUBJECT: "Lamp 灯",
        BODY: "It burns.\r\n\r\nDora",
        SENDER: "Dora",
        SENDER_ADDRESS: "d@quay.example",
    }
    document = read(
        outlook_message(
            texts,
            sent=datetime(2024, 5, 6, 7, tzinfo=UTC),
            recipients=("Cid", "Bob Crane"),
            files=("oil.pdf",),
        ),
        "a.msg",
    )
    assert document.text == (
        'From: "Dora" <d@quay.example>\nTo: Cid, Bob Crane\nSubject: Lamp 灯\n\nIt burns.\n\nDora\n\n'
        "Attachments: oil.pdf"
    )
    assert (document.title, document.date) == ("Lamp 灯", "2024-05-06")
    with pytest.raises(ConfigError, match="is not a message of Outlook"):
        read(b"\xd0\xcf\x11\xe0" + bytes(600), "a.msg")


def mail(*parts: str) -> str:
    """A message with several parts."""
    head = 'From: Dora <d@quay.example>\nSubject: Lamp\nContent-Type: multipart/mixed; boundary="B"\n\n'
    return head + "".join(f"--B\n{part}\n" for part in parts) + "--B--\n"


def test_a_mail_has_its_texts_around_pictures_and_the_messages_that_are_attached() -> None:
    """In their places; messages inside messages end at a depth, which is noted."""
    picture = (
        "Content-Type: image/png; name=lamp.png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo="
    )
    forwarded = (
        "Content-Type: message/rfc822\n\nFrom: Cid <c@quay.example>\nSubject: 油\n\nI sell oil."
    )
    text = read(
        mail(
            "Content-Type: text/plain\n\nSee it:",
            picture,
            "Content-Type: text/plain\n\nIt burns.",
            forwarded,
        ),
        "a.eml",
    ).text
    body = text.partition("\n\n")[2]
    assert body == (
        "See it:\n\nIt burns.\n\nFrom: Cid <c@quay.example>\nSubject: 油\n\nI sell oil.\n\nAttachments: lamp.png"
    )
    nested = "From: Bob <b@quay.example>\n\nThe innermost."
    for _ in range(20):
        nested = f"From: Bob <b@quay.example>\nContent-Type: message/rfc822\n\n{nested}"
    content = read_content(nested, "a.eml")
    assert "The innermost" not in content.document.text
    assert content.notes == ("messages below 10 others are left out",)


@pytest.mark.parametrize(
    "field",
    [
        "multipart/alternative; boundary==_Next_0042",
        "multipart/alternative",
        'text/x; boundary="no"',
    ],
)
def test_a_mail_whose_boundary_is_not_the_one_it_names_has_its_parts(field: str) -> None:
    """Unquoted with a sign that must be quoted, missing, and of another type."""
    parts = "".join(
        f"--=_Next_0042\nContent-Type: text/{kind}; charset=utf-8\n\n{text}\n"
        for kind, text in (("plain", "The lamp burns 灯."), ("html", "<p>The lamp burns 灯.</p>"))
    )
    head = f"From: Dora <d@quay.example>\nContent-Type: {field}\nSubject: Lamp\n\nPreamble.\n\n"
    text = read(f"{head}{parts}--=_Next_0042--\n", "a.eml").text
    assert text.startswith("From: Dora <d@quay.example>\nSubject: Lamp\n\nThe lamp burns 灯.")
    assert "_Next_" not in text
    assert "<p>" not in text


def test_a_page_saved_in_one_file_is_the_page() -> None:
    """In its encoding; a file without a page says so."""
    page = (
        b'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="x"\n\n--x\nContent-Type: text/html; '
        b'charset="gbk"\nContent-Transfer-Encoding: quoted-printable\n\n<h1>=C2=EB=CD=B7</h1><p>The=20lamp.</p>\n--x--\n'
    )
    assert read(page, "a.mht").text == "# 码头\n\nThe lamp."
    with pytest.raises(ConfigError, match="holds no page of HTML"):
        read("The lamp.", "a.mht")
