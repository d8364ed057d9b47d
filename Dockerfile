# A broker in a container: no root, data in a volume. It starts by the commands of Kafka's images too (docker/), so that
# Testcontainers' modules take it.
# The same Python and the same versions of the dependencies as the tests (tools/constraints.txt).
ARG PYTHON=3.11
# Where a company has its own Python: --build-arg BASE=registry.example/python:3.11
ARG BASE=python:${PYTHON}-slim
FROM ${BASE} AS build
COPY . /src
RUN python -m venv --without-pip /opt/momus && \
    python -m pip --python /opt/momus/bin/python install --no-cache-dir --disable-pip-version-check -c /src/tools/constraints.txt /src

FROM ${BASE}
COPY --from=build /opt/momus /opt/momus
COPY docker/bin /usr/local/bin
COPY docker/etc /etc
# No --create-home: it would copy /etc/skel into the data directory, which takes no files of others. Mode 1777, so that
# any --user can keep data there; a volume that is empty takes owner and mode over.
RUN useradd --system --uid 10001 --home-dir /var/lib/momus --no-create-home momus && chown -R momus /etc/confluent && \
    install -d -o momus -g momus -m 1777 /var/lib/momus
USER momus
# start scripts of Testcontainers write here; the data directory takes no files of others
WORKDIR /tmp
ENV PATH=/opt/momus/bin:$PATH PYTHONUNBUFFERED=1
VOLUME /var/lib/momus
EXPOSE 9092 19092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=5s --start-period=10s --retries=10 \
    CMD ["momus", "health", "-b", "127.0.0.1:9092", "--timeout", "3"]
ENTRYPOINT ["entrypoint"]
CMD ["serve", "--data-dir", "/var/lib/momus"]
