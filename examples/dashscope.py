"""用通义千问建索引并提问：DASHSCOPE_API_KEY=… python examples/dashscope.py

OPENAI_BASE_URL 可以换成其他兼容 OpenAI 接口的地址。
"""

import os
import sys

from lightrag_jsonl import LightRAG, OpenAIEmbedder, OpenAILLM

SERVER = os.environ.get("OPENAI_BASE_URL", "https://dashscope.aliyuncs.com/compatible-mode/v1")
KEY = os.environ.get("DASHSCOPE_API_KEY", "")
if not KEY:
    sys.exit("请先设置密钥：export DASHSCOPE_API_KEY=…")
TEXT = "居里夫人发现了钋和镭。她出生在华沙，后来在巴黎工作。"

llm = OpenAILLM("qwen-plus", base_url=SERVER, api_key=KEY)
embedder = OpenAIEmbedder("text-embedding-v4", base_url=SERVER, api_key=KEY, batch_size=10)
with LightRAG("kb-dashscope", llm=llm, embedder=embedder, language="zh") as rag:
    report = rag.insert(TEXT)
    print(f"{report.usage.calls} 次调用，输入 {report.usage.input_tokens} token")
    for failure in report.failures:
        print("失败：", failure.reason)
    print(rag.query("居里夫人发现了什么？"))
