# The server in a container: not root, read-only root file system, data in the volume /data.
#
#     docker build -t fencepost .
#     docker run --read-only --tmpfs /tmp -v fencepost:/data -p 127.0.0.1:8000:8000 fencepost

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/fencepost
COPY requirements/run.txt requirements/
RUN /opt/fencepost/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements/run.txt
COPY pyproject.toml setup.py README.md LICENSE wsgi.py ./
COPY app app
COPY migrations migrations
COPY static static
COPY templates templates
RUN /opt/fencepost/bin/pip install --quiet --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin fencepost \
    && install -d -o fencepost -g fencepost -m 0700 /data
COPY --from=build /opt/fencepost /opt/fencepost
ENV PATH=/opt/fencepost/bin:$PATH PYTHONDONTWRITEBYTECODE=1 \
    FENCEPOST_DATA_DIR=/data FENCEPOST_BIND=0.0.0.0:8000
WORKDIR /data
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["fencepost-server"]
CMD ["serve"]
