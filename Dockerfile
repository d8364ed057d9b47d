# A broker in a container: no root, data in a volume. It starts by the commands of Kafka's images too (docker/), so that
# Testcontainers' modules take it.
# The same Python and the same versions of the dependencies as the tests (tools/constraints.txt).
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS build
COPY . /src
RUN python -m venv /opt/momus && /opt/momus/bin/pip install --no-cache-dir -c /src/tools/constraints.txt /src

FROM python:${PYTHON}-slim
COPY --from=build /opt/momus /opt/momus
COPY docker/bin /usr/local/bin
COPY docker/etc /etc
RUN useradd --system --uid 10001 --home-dir /var/lib/momus --create-home momus && chown -R momus /etc/confluent
USER momus
# start scripts of Testcontainers write here; the data directory takes no files of others
WORKDIR /tmp
ENV PATH=/opt/momus/bin:$PATH PYTHONUNBUFFERED=1 \
    KAFKA_LISTENERS=PLAINTEXT_HOST://0.0.0.0:9092,PLAINTEXT://0.0.0.0:19092 \
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT_HOST:PLAINTEXT,PLAINTEXT:PLAINTEXT
VOLUME /var/lib/momus
EXPOSE 9092 19092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=5s --start-period=10s --retries=10 \
    CMD ["momus", "health", "-b", "127.0.0.1:9092", "--timeout", "3"]
ENTRYPOINT ["entrypoint"]
CMD ["serve", "--data-dir", "/var/lib/momus"]
