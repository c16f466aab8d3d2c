"""What Dify gets from an index: python examples/dify_knowledge.py http://127.0.0.1:9621 KB "QUESTION"

Start `lightrag-jsonl serve kb` first (extra `server`). In Dify: Knowledge › External Knowledge API, with the
server's address as the endpoint and the server's token as the key; then connect an external knowledge base,
with the name of the index (or `index:mode`) as its id. This script sends the request that Dify sends for a
question and prints the passages that a Dify app would show its model. The token comes from TOKEN, if set.
"""

import json
import os
import sys
import urllib.request

endpoint, knowledge_id, question = sys.argv[1:4]
body = {
    "knowledge_id": knowledge_id,
    "query": question,
    "retrieval_setting": {"top_k": 3, "score_threshold": 0.2},
}
request = urllib.request.Request(
    f"{endpoint.rstrip('/')}/retrieval",
    data=json.dumps(body).encode("utf-8"),
    headers={
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ.get('TOKEN', '')}",
    },
)
with urllib.request.urlopen(request) as reply:
    records = json.load(reply)["records"]
for record in records:
    metadata = record["metadata"]
    print(f"{record['score']:.2f}  {record['title']}, page {metadata['page']}: {record['content']}")
