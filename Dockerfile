# Stasis with Debian's Chromium, as an unprivileged user, Chrome's sandbox on.
#
#   docker build -t stasis .
#   docker run -d --name stasis -p 127.0.0.1:8080:8080 -v stasis-data:/data --shm-size=1g \
#     --cap-drop=ALL --security-opt no-new-privileges --security-opt seccomp=docker/seccomp.json stasis
#   docker logs stasis        # the first start prints the API key, once
#   docker stop -t 60 stasis  # running sessions are saved first
#
# The seccomp profile is what lets Chrome make the user namespaces that its
# sandbox is built of; Docker's own profile refuses them. The host must allow
# them to unprivileged users, as Debian does. Chrome's processes share memory
# under /dev/shm, for which Docker's 64 MB are too few.

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
# The port is published as the operator says, so the daemon may listen on all
# of the container's own addresses; put TLS before it for anything but loopback.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["stasis", "health", "--url", "http://127.0.0.1:8080/readyz"]
# tini reaps what Chrome's helpers leave behind, and passes SIGTERM on.
ENTRYPOINT ["tini", "--", "stasis"]
CMD ["serve", "--listen", "0.0.0.0:8080", "--insecure-listen", "--data-dir", "/data"]
