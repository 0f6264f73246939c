# The service: docker build -t lexbandits . && docker compose up
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/lexbandits && \
    /opt/lexbandits/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve,postgres]"

FROM python:3.11-slim
RUN useradd --system --create-home --home-dir /var/lib/lexbandits --uid 10001 lexbandits
COPY --from=build /opt/lexbandits /opt/lexbandits
ENV PATH=/opt/lexbandits/bin:$PATH \
    NUMBA_CACHE_DIR=/var/lib/lexbandits/cache \
    LEXBANDITS_STORAGE=/var/lib/lexbandits/data/studies.db
USER 10001
WORKDIR /var/lib/lexbandits
# compiled code is part of the image: the first request does not wait for it
RUN lexbandits warm && mkdir data
VOLUME /var/lib/lexbandits/data
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8787/healthz', timeout=4)"]
CMD ["lexbandits", "serve", "--host", "0.0.0.0", "--port", "8787"]
