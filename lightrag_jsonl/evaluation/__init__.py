"""Measures retrieval: questions with known passages, and scores with confidence intervals."""

from lightrag_jsonl.evaluation.generating import generate_questions
from lightrag_jsonl.evaluation.health import GraphHealth, graph_health
from lightrag_jsonl.evaluation.lookup import Lookup
from lightrag_jsonl.evaluation.questions import EvalQuestion, read_questions, write_questions
from lightrag_jsonl.evaluation.running import Retriever, Row, evaluate, rank_retrievers, retrievers
from lightrag_jsonl.evaluation.scores import Interval, Score

__all__ = [
    "EvalQuestion",
    "GraphHealth",
    "Interval",
    "Lookup",
    "Retriever",
    "Row",
    "Score",
    "evaluate",
    "generate_questions",
    "graph_health",
    "rank_retrievers",
    "read_questions",
    "retrievers",
    "write_questions",
]
