# docker build -t lightrag-jsonl .
# PyPI's torch for Linux brings CUDA, some GB. For its CPU build, give pip the index that PyTorch
# names for it: --build-arg PIP_EXTRA_INDEX_URL=…
FROM python:3.12-slim AS build
ARG PIP_EXTRA_INDEX_URL
WORKDIR /src
COPY . .
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir -c constraints.txt '.[files,mcp,postgres,ray,rdf,server]'

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 app && mkdir -p /data/kb && chown -R app /data
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
USER app
VOLUME /data
EXPOSE 9621
HEALTHCHECK --start-period=30s CMD ["python", "-c", \
    "from urllib.request import urlopen; urlopen('http://127.0.0.1:9621/health', timeout=5)"]
ENTRYPOINT ["lightrag-jsonl"]
# Beyond loopback the server needs a token of 16 characters or more: -e LIGHTRAG_JSONL_TOKEN=…
CMD ["serve", "/data/kb", "--host", "0.0.0.0"]
