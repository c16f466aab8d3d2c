"""Prompts as data: files and configurations, templates, schemas, and the reading of answers."""

from lightrag_jsonl.prompts.manager import PromptManager, check_set, strangers
from lightrag_jsonl.prompts.prompt import Prompt

__all__ = ["Prompt", "PromptManager", "check_set", "strangers"]
