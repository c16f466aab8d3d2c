"""Measure retrieval on your own corpus: python examples/evaluate.py FOLDER [QUESTIONS.jsonl]

A line of QUESTIONS is {"question": …, "supporting": [ids of documents or chunks], "answer": …}.
Without a file, questions over two chunks each are generated from the graph.
"""

import sys
from pathlib import Path

from lightrag_jsonl import LightRAG
from lightrag_jsonl.tools.evaluation import evaluate, generate_questions, read_questions

folder, *questions = sys.argv[1:]
with LightRAG("kb-eval") as rag:
    rag.insert(Path(folder))
    asked = read_questions(questions[0]) if questions else rag.run(generate_questions, 50)
    print(f"{len(asked)} questions")
    for row in rag.run(evaluate, asked, modes=["local", "mix"]):
        recall = row.metrics["recall@5"]
        print(f"{row.name:8}{recall.value:8.1%}  [{recall.low:.1%}, {recall.high:.1%}]")
