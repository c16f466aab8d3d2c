"""reStructuredText, Org, LaTeX, JSON, XML and mail: texts with structure."""

import json
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from tests.readers.files import read, read_content

RST = """=========
The Fleet
=========

:Author: Rosa Delmar
:Date: 2024-05-06

The *Petrel* is in :ref:`the log <log>` and `Leith <https://leith.example>`_. 中文

.. _crew:

The Crew
--------

.. note:: They sail at dawn.

.. image:: a.png
   :alt: ship

.. code-block:: python
   :linenos:

   count(1)

.. a comment
   of two lines

Officers
~~~~~~~~
See :class:`~fleet.Ship` and ``x = 1``.

The Ships
---------

======  =====
Name    Born
======  =====
Ada     1815
======  =====
"""


def test_restructured_text() -> None:
    """Titles are headings of their levels, and the rules of a table are none."""
    document = read(RST, "a.rst")
    assert (document.date, document.metadata) == ("2024-05-06", {"author": "Rosa Delmar"})
    headings = [line for line in document.text.split("\n") if line.startswith("#")]
    assert headings == ["# The Fleet", "## The Crew", "### Officers", "## The Ships"]
    for text in (
        "is in the log and Leith. 中文",
        "They sail at dawn.",
        "```\ncount(1)\n```",
        "See fleet.Ship and `x = 1`.",
    ):
        assert text in document.text
    for text in ("linenos", "a.png", "comment", "two lines", "_crew", "::"):
        assert text not in document.text


ORG = """#+TITLE: 船队日志
#+DATE: <2024-05-06 Mon>
#+AUTHOR: Rosa
# a comment
* TODO Fleet :work:
:PROPERTIES:
:ID: 7
:END:
SCHEDULED: <2024-01-01>
The [[https://leith.example][Petrel]] sails.
#+BEGIN_SRC python
count(1)
#+END_SRC
** Crew
| Name | Born |
|------+------|
| Ada  | 1815 |
"""


def test_org() -> None:
    """Stars are headings; keywords, drawers, dates of plans and comments are no text."""
    assert read(ORG, "a.org") == Document(
        "# Fleet\n\nThe Petrel sails.\n```python\ncount(1)\n```\n\n## Crew\n\n| Name | Born |\n| Ada  | 1815 |",
        title="船队日志",
        date="2024-05-06",
        metadata={"author": "Rosa"},
    )


TEX = r"""\documentclass{article}
\title{The Fleet}\author{Rosa Delm\'ar}\date{2024-05-06}
\usepackage[utf8]{inputenc}
\begin{document}
\maketitle
\section{Crew \& Ships}\label{s}
The \textbf{\emph{Petrel}} costs 5\% more~\cite{x}, % a comment
see \href{https://leith.example}{the log}. Caf\'{e} na\"ive stra\ss e, $x^2 + y_1$.
\begin{equation}
E = mc^2
\end{equation}
\begin{itemize}
\item One ship --- ``fast''
\end{itemize}
\begin{verbatim}
a % b \c
\end{verbatim}
\subsection{人物}
船队
\end{document}
after the end
"""


def test_latex() -> None:
    """Sections are headings, formulas and code stay as they are, other commands go."""
    assert read(TEX, "a.tex") == Document(
        "## Crew & Ships\n\nThe Petrel costs 5% more , \nsee the log. Café naïve straße, $x^2 + y_1$.\n\n"
        "\\begin{equation}\nE = mc^2\n\\end{equation}\n\n- One ship — “fast”\n\n"
        "```\na % b \\c\n```\n\n### 人物\n\n船队",
        title="The Fleet",
        date="2024-05-06",
        metadata={"author": "Rosa Delmár"},
    )


def test_latex_after_a_preamble_that_is_not_balanced_is_read() -> None:
    """Definitions that open or close environments, and signs that close what was never opened."""
    preamble = (
        "\\newcommand{\\start}{\\begin{quote}\\begingroup}\n\\newcommand{\\finish}{\\endgroup\\end{quote}}\n"
        "\\def\\open{\\bgroup\\csname x\\endcsname\n\\title{The lamp}\n"
    )
    body = "Dora lights it. } \\end{center} 灯亮了。\\section{Oil}\nBob sells it."
    text = read(f"{preamble}\\begin{{document}}\n{body}\n\\end{{document}}\nNever.", "a.tex").text
    assert " ".join(text.split()) == "Dora lights it. 灯亮了。 ## Oil Bob sells it."


def test_contents_and_warnings_of_sphinx_have_their_words() -> None:
    """Titles of pages as points, and the kind of a warning before it."""
    text = read(
        "Quay\n====\n\n.. toctree::\n   :maxdepth: 2\n\n   The lamp <lamp/index>\n   oil\n\n"
        ".. warning:: It is hot.\n\n.. note::\n\n   Ask Dora.\n\n   灯很烫。\n",
        "a.rst",
    ).text
    assert text == (
        "# Quay\n\n- The lamp\n- oil\n\nWarning: It is hot.\n\nNote: Ask Dora.\n\n灯很烫。"
    )


def test_the_code_in_reports_of_errors_of_a_notebook_is_noted() -> None:
    """The error itself is read."""
    error = {
        "output_type": "error",
        "ename": "KeyError",
        "evalue": "'lamp'",
        "traceback": ["File lamp.py", "line 7"],
    }
    cell = {"cell_type": "code", "source": "light()", "outputs": [error]}
    content = read_content(json.dumps({"cells": [cell]}), "a.ipynb")
    assert "KeyError: 'lamp'" in content.document.text
    assert content.notes == ("the lines of code in reports of errors are left out",)


def test_json_is_names_with_values() -> None:
    """Objects in lists are paragraphs, other objects stand below their name."""
    value = {
        "name": "Petrel",
        "crew": [{"name": "Ada", "born": 1815, "tags": ["a", "b"]}, {"name": "张三"}],
        "port": {"city": "Leith", "size": {"berths": 7}},
        "empty": None,
        "none": [],
    }
    expected = (
        "name: Petrel\n\n# crew\n\nname: Ada; born: 1815; tags: a, b\n\nname: 张三\n\n"
        "# port\n\ncity: Leith\n\n## size\n\nberths: 7"
    )
    assert read(json.dumps(value), "a.json").text == expected
    assert read('[{"a": 1}, {"a": true}]', "a.json").text == "a: 1\n\na: true"
    assert read('{"a": 1}\n{"a": 2}\n', "a.json").text == "a: 1\n\na: 2"


@pytest.mark.parametrize("text", ['{"a": ', "[" * 100_000, "[" * 300 + "[1]" + "]" * 300, "null"])
def test_json_that_cannot_be_read_says_why(text: str) -> None:
    """Broken, nested too deeply, or without a value."""
    with pytest.raises(ConfigError, match=r"a\.json (is not valid JSON|is nested|is empty)"):
        read(text, "a.json")


@pytest.mark.parametrize("text", ['{"cells": ', "[" * 100_000, "null"])
def test_a_notebook_that_cannot_be_read_says_why(text: str) -> None:
    """The same of JSON in a file by the name of a notebook."""
    with pytest.raises(ConfigError, match=r"a\.ipynb (is not a valid notebook|is nested)"):
        read(text, "a.ipynb")


def test_xml_of_records_and_of_texts() -> None:
    """Elements without children are names with values, titles are headings; in any encoding."""
    pytest.importorskip("lxml")
    records = (
        '<?xml version="1.0" encoding="gbk"?><fleet xmlns="u"><ship name="Petrel" id="x">'
        "<built>1815</built><captain>张三</captain></ship><ship><built>1816</built></ship></fleet>"
    )
    text = "ship: name: Petrel; built: 1815; captain: 张三\n\nship: built: 1816"
    assert read(records.encode("gbk"), "a.xml").text == text
    book = (
        "<article><title>Log</title><sec><title>Crew</title><p>The <b>Petrel</b>\n sails.</p>"
        "<!-- c --><p>Twice.</p></sec></article>"
    )
    assert read(book, "a.xml").text == "# Log\n\n## Crew\n\nThe Petrel sails.\n\nTwice."


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("Ada", "is not valid XML")])
def test_xml_that_cannot_be_read_says_why(text: str, words: str) -> None:
    """Empty, or without an element; one that is not closed is read."""
    pytest.importorskip("lxml")
    with pytest.raises(ConfigError, match=rf"a\.xml {words}"):
        read(text, "a.xml")
    assert read("<log><p>Ada sails.", "a.xml").text == "Ada sails."


def test_xml_resolves_no_entity(tmp_path: Path) -> None:
    """Neither a file's nor one that grows."""
    pytest.importorskip("lxml")
    (tmp_path / "secret").write_text("the password", encoding="utf-8")
    grown = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol" * 10}">' for n in range(12)
    )
    secret = f'<!ENTITY s SYSTEM "{(tmp_path / "secret").as_uri()}">'
    page = f"<!DOCTYPE x [{secret}{grown}]><x><p>Ada &s; &e11; sails.</p></x>"
    text = read(page, "a.xml").text
    assert "Ada" in text and "password" not in text and len(text) < 200


MAIL = """From: =?utf-8?b?5byg5LiJ?= <zhang@leith.example>
To: Rosa <rosa@leith.example>
Subject: =?iso-8859-1?q?Caf=E9?=
Date: Mon, 06 May 2024 23:00:00 +0800
Message-ID: <7@leith.example>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain; charset=windows-1250
Content-Transfer-Encoding: 8bit

{plain}
--c
Content-Type: text/html; charset=utf-8

<p>HTML <b>part</b></p>
--c--
--b
Content-Type: application/pdf; name="plan.pdf"
Content-Disposition: attachment; filename="plan.pdf"
Content-Transfer-Encoding: base64

AAAA
--b--
"""


def test_a_mail_is_its_people_and_its_text() -> None:
    """The plain part in its encoding, without attachments but for their names."""
    data = MAIL.replace("{plain}", "Łódź płynie.").encode("cp1250").replace(b"\n", b"\r\n")
    people = {"from": "张三 <zhang@leith.example>", "to": "Rosa <rosa@leith.example>"}
    assert read(data, "a.eml") == Document(
        "From: 张三 <zhang@leith.example>\nTo: Rosa <rosa@leith.example>\nSubject: Café\n\n"
        "Łódź płynie.\n\nAttachments: plan.pdf",
        title="Café",
        date="2024-05-06",
        metadata={**people, "message_id": "<7@leith.example>"},
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_a_mail_may_begin_with_a_byte_order_mark(encoding: str) -> None:
    """As programs for Windows save it; the subject and the text are the same."""
    message = "From: Ada <ada@example.org>\r\nSubject: Pumps\r\n\r\nThe pump works in 東京.\r\n"
    document = read(message.encode(encoding), "a.eml")
    assert document.title == "Pumps" and document.text.endswith("The pump works in 東京.")


def test_a_mail_without_a_plain_part_is_its_page() -> None:
    """And one whose headers are broken is still read."""
    pytest.importorskip("lxml")
    text = read(MAIL.replace("{plain}", ""), "a.eml").text
    assert "HTML part" in text
    broken = b"From: <<>\nDate: yesterday\nSubject: =?x?q?Hi?=\nContent-Type: text/plain; charset=nowhere\n\nAda\n"
    document = read(broken, "a.eml")
    assert document.text.endswith("Ada") and document.date is None
    with pytest.raises(ConfigError, match=r"a\.eml is not a message"):
        read("Only a text.", "a.eml")


@pytest.mark.slow
def test_who_wrote_a_mail_can_be_asked(tmp_path: Path) -> None:
    """Its metadata filter, and its people are in the text."""
    data = MAIL.replace("{plain}", "The pump is ready.").encode("cp1250")
    (tmp_path / "a.eml").write_bytes(data)
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(tmp_path / "a.eml")
        where = {"to": "Rosa <rosa@leith.example>"}
        (chunk,) = rag.retrieve("pump", mode="naive", where=where).chunks
    assert "From: 张三" in chunk.text and chunk.title == "Café"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "unit"),
    [("a.org", "["), ("a.rst", ":a"), ("a.org", "`"), ("a.md", "`"), ("a.md", "[")],
)
def test_an_opening_that_is_repeated_without_end(name: str, unit: str) -> None:
    """A line of a million openings of links, roles or code is read: no rule tries each of them to the
    end of the line, which would take hours.
    """
    line = unit * (1_000_000 // len(unit))
    document = read(f"# Mill\n\n{line}", name)
    assert document.text.count(unit) == line.count(unit)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            r"Das \foreignlanguage{german}{Haus} steht. \selectlanguage{english}Yes.",
            "Das Haus steht. Yes.",
        ),
        (
            r"\foreignlanguage[date]{ngerman}{灯塔} \textfrench[variant=acadian]{phare}",
            "灯塔 phare",
        ),
        (r"\begin{otherlanguage}{french}Bonjour\end{otherlanguage} tous", "Bonjour tous"),
        (
            r"\resizebox{2cm}{!}{wide} \rotatebox{90}{turned} \parbox{3cm}{a box}",
            "wide turned a box",
        ),
        (r"\multicolumn{2}{c}{Both} \multirow{2}{*}{two} \hyperref[sec:a]{here}", "Both two here"),
        (
            r"\begin{minipage}{5cm}Mini\end{minipage} by \LaTeX{} \hyphenation{pump-ing}",
            "Mini by LaTeX",
        ),
    ],
)
def test_settings_in_the_arguments_of_latex_are_no_words(source: str, words: str) -> None:
    """A language, a width or a number of columns is not read; the text after it is, and nothing is noted."""
    content = read_content(f"\\begin{{document}}\n{source}\n\\end{{document}}", "a.tex")

    assert (" ".join(content.document.text.split()), content.notes) == (words, ())


def test_the_last_line_of_latex_keeps_its_words_before_the_end() -> None:
    """Also where the whole document stands on one line."""
    one_line = (
        r"\documentclass{article}\begin{document}Oil burns et al.\ in 码头.\end{document} Never."
    )
    assert read(one_line, "a.tex").text == "Oil burns et al. in 码头."


def test_a_later_definition_of_latex_uses_an_earlier_one() -> None:
    """And counts wherever the command stands."""
    source = (
        "\\newcommand{\\lamp}{lamp}\n\\newcommand{\\lamps}[1]{#1 \\lamp s}\n"
        "\\begin{document}\n\\lamps{two}, \\newcommand{\\oil}{oil of the \\lamp} \\oil\n\\end{document}"
    )
    assert " ".join(read(source, "a.tex").text.split()) == "two lamps, oil of the lamp"
