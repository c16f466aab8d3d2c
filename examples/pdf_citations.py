"""Ask a PDF file and get page citations: python examples/pdf_citations.py FILE.pdf "QUESTION"

Needs the extra `files`.
"""

import sys
from pathlib import Path

from lightrag_jsonl import LightRAG

if len(sys.argv) != 3:
    sys.exit('usage: python examples/pdf_citations.py FILE.pdf "QUESTION"')
file, question = sys.argv[1:]
with LightRAG("kb-pdf") as rag:
    for failure in rag.insert(Path(file)).failures:
        sys.exit(f"{file}: {failure.reason}")
    answer = rag.query(question)
    print(answer.text)
    for citation in answer.citations:
        if citation.text:
            page = rag.pages(citation.document_id)[citation.page - 1]
            assert page.text[citation.start : citation.end] == citation.text
            place = f"characters {citation.start} to {citation.end}"
            print(f"[{citation.number}] page {citation.page}, {place}: {citation.text}")
