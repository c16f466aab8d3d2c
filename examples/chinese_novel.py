"""中文小说：按章节建索引并提问。A Chinese novel, chapter by chapter: python examples/chinese_novel.py 小说.txt

不用模型即可运行；要用模型，请设置 OPENAI_API_KEY（及 OPENAI_BASE_URL），再加上模型名：
python examples/chinese_novel.py 小说.txt qwen-plus
"""

import sys
from pathlib import Path

from lightrag_jsonl import LightRAG

novel, model, *_ = [*sys.argv[1:], "none"]
with LightRAG("kb-novel", language="zh", llm=model) as rag:
    rag.insert(Path(novel))
    status = rag.status()
    print(f"{status.chunks} 块，{status.entities} 个实体，{status.relations} 条关系")
    for duplicate in rag.entities.merge_stated():  # 文中写明的别名
        print(f"别名：{duplicate.into} = {duplicate.name}")
    for question in ("刘备是谁？", "桃园结义的是哪三个人？"):
        print(f"\n问：{question}\n{rag.query(question, mode='mix')}")
    rag.admin.export("novel.html")
