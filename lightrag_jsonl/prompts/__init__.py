"""Prompts as data: files and configuration, templates, schemas, and how answers are read."""

from lightrag_jsonl.prompts.manager import PromptManager, check_set, strangers
from lightrag_jsonl.prompts.prompt import Prompt

__all__ = ["Prompt", "PromptManager", "check_set", "strangers"]
