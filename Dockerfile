# The two commands of the README, on a fresh Debian:
#     docker build -t ttcodegen .            installs ttcodegen and checks an example
#     docker build --target tests .          ... and runs all tests
FROM python:3.12-slim-bookworm AS tool
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ git && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /opt/ttcodegen
COPY . .
RUN python3 -m venv .venv && .venv/bin/pip install -q -e . && .venv/bin/ttcodegen examples/digits/digits.mlir -o out/digits --check
ENV PATH=/opt/ttcodegen/.venv/bin:$PATH
WORKDIR /work
CMD ["ttcodegen", "--help"]

FROM tool AS tests
WORKDIR /opt/ttcodegen
RUN python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest -q -n auto

# What `docker build` makes without --target.
FROM tool
