"""Reads the values in the forms of PDF files."""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lightrag_jsonl.text.strings import single_spaced

LONGEST_TEXT = 1 << 20  # bytes of UTF-16


def form_values(page: Any) -> Iterator[str]:
    """The filled fields of a page, as "Name: Ada"; of boxes and buttons, only checked ones.

    The forms of the page's document must be open (`init_forms`).
    """
    import pypdfium2.raw as pdfium

    if page.formenv is None:
        return
    readable = (
        pdfium.FPDF_FORMFIELD_TEXTFIELD,
        pdfium.FPDF_FORMFIELD_COMBOBOX,
        pdfium.FPDF_FORMFIELD_LISTBOX,
    )
    checkable = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
    for index in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        try:
            form = page.formenv.raw
            kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
            is_checked = kind in checkable and pdfium.FPDFAnnot_IsChecked(form, annotation)
            if kind in readable or is_checked:
                yield from _field(form, annotation)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _field(form: Any, annotation: Any) -> Iterator[str]:
    """The name of a field for people, or else the name for programs, and the value."""
    import pypdfium2.raw as pdfium

    value = written_text(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation))
    label = written_text(partial(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation))
    name = label or written_text(partial(pdfium.FPDFAnnot_GetFormFieldName, form, annotation))
    if value:
        yield f"{name}: {value}" if name else value


def written_text(write: Callable[[Any, int], int]) -> str:
    """The text that a function of PDFium writes into a buffer, in one line."""
    import pypdfium2.raw as pdfium

    length = min(write(None, 0), LONGEST_TEXT)
    buffer = ctypes.create_string_buffer(length)
    characters = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
    write(characters, length)
    text = buffer.raw.decode("utf-16-le", "replace")
    return single_spaced(text.rstrip("\0"))
