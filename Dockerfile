# Stasis with Debian's Chromium, run by an unprivileged user, with Chrome's sandbox on.
#
#   docker build -t stasis .
#   docker run -d --name stasis -p 127.0.0.1:8080:8080 -v stasis-data:/data --shm-size=1g \
#     --cap-drop=ALL --security-opt no-new-privileges --security-opt seccomp=docker/seccomp.json stasis
#   docker logs stasis        # the first start prints the API key, once
#   docker stop -t 90 stasis  # running sessions are saved first
#
# The seccomp profile allows Chrome to make the user namespaces that its sandbox
# needs; Docker's own profile refuses them. The host must allow them to unprivileged
# users, as Debian does. Chrome's processes share memory under /dev/shm, and Docker's
# default of 64 MB is too small for it.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /stasis ./cmd/stasis

FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      ca-certificates chromium chromium-headless-shell fonts-liberation fonts-noto-color-emoji tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 stasis \
 && useradd --uid 10001 --gid stasis --no-create-home --home-dir /data --shell /usr/sbin/nologin stasis \
 && install -d -o stasis -g stasis -m 0700 /data
COPY --from=build /stasis /usr/local/bin/stasis

USER stasis
VOLUME /data
EXPOSE 8080
# The operator decides where the port is published, so the daemon may listen on all
# addresses of the container. Beyond loopback, put a proxy with TLS before it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["stasis", "health", "--url", "http://127.0.0.1:8080/readyz"]
# tini reaps orphaned processes of Chrome and passes SIGTERM on.
ENTRYPOINT ["tini", "--", "stasis"]
CMD ["serve", "--listen", "0.0.0.0:8080", "--insecure-listen", "--data-dir", "/data"]
