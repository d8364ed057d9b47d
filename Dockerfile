# A broker in a container: no root, data in a volume. It starts by the commands of Kafka's images too (docker/), so that
# Testcontainers' modules take it.
# Not the binary: with its own Python it takes 112 MB, where the layers of the wheel take 59.
# The same Python and the same versions of the dependencies as the tests (tools/constraints.txt), held to hashes (tools/lock.txt).
ARG PYTHON=3.11
# Where a company has its own Python: --build-arg BASE=registry.example/python:3.11
ARG BASE=python:${PYTHON}-slim
FROM ${BASE} AS build
WORKDIR /src
# Wheels carry symbols that only a debugger reads, 26 MB of them.
RUN command -v strip >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends binutils >/dev/null; }
# The dependencies first: a change of momus itself installs momus alone. With what `--security`, `--otel`,
# `--registry` and `--load` of YAML need.
COPY tools/lock.txt tools/build-lock.txt ./
RUN python -m venv --without-pip /opt/momus && python -m venv --without-pip /opt/build && \
    install="install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes" && \
    python -m pip --python /opt/momus/bin/python $install -r lock.txt && \
    python -m pip --python /opt/build/bin/python $install -r build-lock.txt && \
    find /opt/momus -name '*.so*' -type f -exec strip --strip-unneeded '{}' +
COPY . .
# Sources of extensions and libraries' own tests (1.5 MB) are of no use here, nor is what grpcio-tools wants beside protoc (26 MB):
# gRPC itself and setuptools; nor what makes bindings of C (1.2 MB), of which cryptography wants _cffi_backend alone. Bytecode stays: a start without takes three times as long; only that of the exporter of traces, which few
# starts import, is left out (6 MB).
RUN python -m pip --python /opt/build/bin/python wheel --disable-pip-version-check --no-deps --no-build-isolation -w /opt/wheel . && \
    python -m pip --python /opt/momus/bin/python install --no-cache-dir --disable-pip-version-check --no-deps /opt/wheel/momus-*.whl && \
    cd /opt/momus/lib/python3*/site-packages && rm -rf avro/test certifi/tests google/protobuf/testdata jsonschema/benchmarks jsonschema/tests referencing/tests cffi pycparser grpc setuptools _distutils_hack distutils-precedence.pth && \
    find . '(' -name '*.c' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.pyi' ')' -delete && \
    find opentelemetry google requests urllib3 charset_normalizer -name __pycache__ -prune -exec rm -rf '{}' +

FROM ${BASE}
# Who releases it says where from and of which commit; there is no public repository yet.
ARG SOURCE=unpublished
ARG REVISION=unknown
LABEL org.opencontainers.image.title=momus \
    org.opencontainers.image.description="A Kafka-protocol broker for tests, CI and laptops" \
    org.opencontainers.image.version=0.1.0 \
    org.opencontainers.image.licenses=Apache-2.0 \
    org.opencontainers.image.source=$SOURCE \
    org.opencontainers.image.revision=$REVISION
COPY --from=build /opt/momus /opt/momus
COPY docker/bin /usr/local/bin
COPY docker/etc /etc
# No --create-home: it would copy /etc/skel into the data directory, which takes no files of others. Mode 1777, so that
# any --user can keep data there; a new volume takes owner and mode over. Where the images of Confluent and Bitnami keep
# data, KAFKA_LOG_DIRS may say so here too. Start scripts of Testcontainers change files in /etc/confluent.
RUN useradd --system --uid 10001 --home-dir /var/lib/momus --no-create-home momus && \
    install -d -o momus -g momus -m 1777 /var/lib/momus /var/lib/kafka /var/lib/kafka/data /bitnami/kafka && \
    chmod -R a+rwX /etc/confluent/docker && mkdir -p /opt/kafka/bin /opt/bitnami/kafka/bin && cd /usr/local/bin && \
    for tool in acls broker-api-versions cluster configs console-consumer console-producer consumer-groups get-offsets topics; do \
      ln -s tool-of-kafka kafka-$tool; done && ln -s tool-of-kafka cub && for tool in kafka-*; do \
      ln -s $tool $tool.sh; for folder in /usr/bin /opt/kafka/bin /opt/bitnami/kafka/bin; do \
        ln -s /usr/local/bin/$tool $folder/$tool; ln -s /usr/local/bin/$tool $folder/$tool.sh; done; done
USER momus
# start scripts of Testcontainers write here; the data directory takes no files of others
WORKDIR /tmp
ENV PATH=/opt/momus/bin:$PATH PYTHONUNBUFFERED=1
VOLUME /var/lib/momus
EXPOSE 9092 19092 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=5s --start-period=10s --retries=10 CMD ["healthcheck"]
ENTRYPOINT ["entrypoint"]
CMD ["serve"]
