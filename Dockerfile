# The image of msmq-fast. Build:  docker build -t msmq-fast .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges --hostname mq1 -v msmq-data:/var/lib/msmq-fast -p 1801:1801 msmq-fast
# Any other user works too, if its group is 0 (--user 12345:0): the data directory belongs to that group.
# Settings come from MSMQ_FAST_SECTION__KEY variables or a TOML file that MSMQ_FAST_CONFIG names; the health check reads both, but no
# flags of the command line. Both images must carry the same Python at the same path; for a build that can be repeated, name them by digest.
ARG BUILD_IMAGE=docker.io/library/python:3.13-bookworm
ARG RUNTIME_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${BUILD_IMAGE} AS build
# "bulk" adds pyarrow for the bulk API, which the Spark source reads:  docker build --build-arg PARTS=bulk .
ARG PARTS=image
WORKDIR /src
COPY requirements/build.lock requirements/image.lock requirements/bulk.lock requirements/
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes --requirement requirements/build.lock \
 && python3 -m venv --without-pip /opt/msmq-fast \
 && /opt/build/bin/pip --python /opt/msmq-fast/bin/python3 install --no-cache-dir --require-hashes --requirement "requirements/${PARTS}.lock"
COPY pyproject.toml setup.py MANIFEST.in LICENSE README.md ./
COPY src src
# Symbols and the sources of others' modules are half of what pip installs. Bytecode stays: the root is read-only, and each start
# and each health check would compile anew.
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/msmq-fast/bin/python3 install --no-cache-dir --no-index --no-deps /wheels/*.whl \
 && find /opt/msmq-fast -name "*.so*" -type f -exec strip --strip-unneeded {} + \
 && find /opt/msmq-fast -type f \( -name "*.pyx" -o -name "*.pxd" -o -name "*.pxi" -o -name "*.h" -o -name "*.a" \) -delete \
 && find /opt/msmq-fast/lib -type d -name tests -prune -exec rm -r {} +

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="msmq-fast" \
      org.opencontainers.image.description="An open-source queue manager that speaks Microsoft Message Queuing" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/msmq-fast /opt/msmq-fast
ENV PATH=/opt/msmq-fast/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    MSMQ_FAST_SERVER__DATA=/var/lib/msmq-fast \
    MSMQ_FAST_BULK__ACCESS=token
RUN groupadd --gid 18010 msmq \
 && useradd --uid 18010 --gid 18010 --home-dir /var/lib/msmq-fast --no-create-home --shell /usr/sbin/nologin msmq \
 && install -d -o 18010 -g 0 -m 0770 /var/lib/msmq-fast
USER 18010:18010
WORKDIR /var/lib/msmq-fast
VOLUME /var/lib/msmq-fast
EXPOSE 1801 2103 2105 3527/udp
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["msmq-fast", "health"]
ENTRYPOINT ["msmq-fast"]
CMD ["serve"]
