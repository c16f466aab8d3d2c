"""What must work where only the wheel and its core dependencies are installed; run by `installed`."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import lightrag_jsonl
from lightrag_jsonl import LightRAG, PromptManager

package = Path(lightrag_jsonl.__file__).parent
assert "site-packages" in package.parts, f"not the installed package: {package}"
assert (package / "py.typed").is_file()
assert find_spec("pyoxigraph") is None, "this environment has an extra"
for language in ("en", "zh"):
    assert PromptManager.load(language).ids

with LightRAG("kb") as rag:
    rag.insert("Marie Curie discovered radium in Paris.")
    answer = rag.query("What did Marie Curie discover?")
    assert "radium" in answer.text and answer.trace_id
    assert rag.traces.export(answer.trace_id)
    assert "<style>" in rag.traces.page(answer.trace_id)

command = Path(sys.executable).parent / "lightrag-jsonl"
subprocess.run([command, "demo"], check=True, stdout=subprocess.DEVNULL)
