# Needs Go, git and make; make test also needs gcc and Node 20. Targets install everything
# else when they first need it: from Debian, or from source into bin/tools.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
LINT     := bin/tools/golangci-lint
LINT_VER := 2.15.0
# deadcode finds functions that no code calls, or only tests.
DEAD     := bin/tools/deadcode
DEAD_VER := 0.52.0
# The S3 server of the tests. They look for it under this path and version.
S3       := bin/tools/versitygw
S3_VER   := 1.8.0

# The proxy of `make bench` that makes connections slow, under the path in e2e/bench/slow.go.
TOXI     := bin/tools/toxiproxy
TOXI_VER := 2.12.0

# cyclonedx-gomod lists the modules of a release.
SBOM     := bin/tools/cyclonedx-gomod
SBOM_VER := 1.10.0

# What the tests need from Debian.
TESTED_WITH := chromium chromium-headless-shell chromium-driver python3-selenium curl php python3 dokuwiki phpliteadmin age zstd xvfb zsh fish systemd passt iproute2 nftables postgresql

# The packages that are linked into the binary.
SHIPPED := ^github.com/stasisd/stasis/(api|backup|browser|budget|cmd|confine|egress|fault|profiles|session|snapshot|state|wire)(/|$$)

# Functions that only encoding/json calls, by reflection, which deadcode does not see.
REFLECTED := state/report/wire.go:

# The race detector skips SQLite and its C library, which are C translated to Go with its own
# memory, and X25519, which is arithmetic. It would find no race of ours there, and makes them nine and
# three times slower. SQLite's driver is not skipped. GOFLAGS is exported, so that the daemon
# that tests build is built the same way.
UNRACED := modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory crypto/internal/fips140/edwards25519/...
RACE    := export GOFLAGS="$$(go env GOFLAGS) $(UNRACED:%=-gcflags=%=-race=false)"

# The collector takes a tenth of the time of tests with the race detector. It runs less often, but
# not in daemons of e2e, whose memory is measured.
RARELY  := GOGC=400

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start the daemon on 127.0.0.1:8080
	@build/need chromium chromium-headless-shell
	@exec bin/stasis serve

.PHONY: build
build: ## build bin/stasis
	@echo "building bin/stasis; the first time this also downloads its Go modules"
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/stasis ./cmd/stasis 2>&1 | build/without-downloads

.PHONY: demo
demo: build ## log in, save, restore, still logged in; prints the time of each step
	@build/need chromium
	@bin/stasis demo

# The linters and the tests each leave a part of two cores idle, so they run beside each other.
.PHONY: check
check: ## format, vet, lint and the tests that need no Chrome
	@go mod tidy -diff
	@$(MAKE) -j2 -Otarget lint unit

# The linters include gofmt and vet. The verbs that ask a daemon also build for macOS.
.PHONY: lint
lint: $(LINT)-$(LINT_VER)
	@$(LINT)-$(LINT_VER) run ./...
	@GOOS=darwin go vet ./cmd/stasis

# With the same flags as in `make test`, so that what has passed there is not run again.
.PHONY: unit
unit: $(S3)-$(S3_VER)
	@build/need systemd postgresql
	@build/in-memory go test -vet=off -timeout 20m $$(build/packages unit)

.PHONY: deadcode
deadcode: $(DEAD)-$(DEAD_VER) ## find functions that nothing calls, or only tests
	@dead=$$(GOGC=400 $(DEAD)-$(DEAD_VER) -filter '$(SHIPPED)' ./cmd/stasis | grep -v '^$(REFLECTED)' || true); \
	[ -z "$$dead" ] || { echo "$$dead"; exit 1; }

# -count 1, because Go's test cache does not notice another Chrome. e2e runs after all others.
# Beside them, its Chromes, daemons and clients would get little of the processors, and their own
# deadlines would pass. The race detector is on where goroutines meet (build/packages). Vet is off,
# because the linters of `make check` include it.
.PHONY: test
test: e2e/clients/node_modules/.package-lock.json clients/typescript/node_modules/.package-lock.json $(S3)-$(S3_VER) ## install what tests need and run all of them
	@build/need $(TESTED_WITH)
	@failed=0; \
	( $(RACE); $(RARELY) build/in-memory go test -vet=off -race -timeout 20m $$(build/packages unit race) ) || failed=1; \
	build/in-memory go test -vet=off -timeout 20m $$(build/packages unit plain) || failed=1; \
	( $(RACE); $(RARELY) build/in-memory go test -vet=off -race -count 1 -p 1 -timeout 20m $$(build/packages chrome race) ) || failed=1; \
	build/in-memory go test -vet=off -count 1 -p 1 -timeout 30m $$(build/packages chrome plain | grep -v '/stasis/e2e$$') || failed=1; \
	go -C deploy test -vet=off ./... || failed=1; \
	build/in-memory go test -vet=off -count 1 -parallel 2 -timeout 60m ./e2e || failed=1; \
	exit $$failed

# Some tests have a short form in make test: STASIS_LONG selects the long one.
.PHONY: test-long
test-long: e2e/clients/node_modules/.package-lock.json clients/typescript/node_modules/.package-lock.json $(S3)-$(S3_VER) ## run all tests with the race detector, those with a short form in their long form
	@build/need $(TESTED_WITH)
	@$(RACE); failed=0; \
	export STASIS_LONG=1; \
	build/in-memory go test -race -timeout 40m $$(build/packages unit) || failed=1; \
	build/in-memory go test -race -count 1 -p 1 -timeout 90m $$(build/packages chrome) || failed=1; \
	exit $$failed

# The long form, with 10,000 sockets and 200 creates, first of a daemon that root runs, then of
# one that an ordinary user runs.
.PHONY: attack
attack: e2e/clients/node_modules/.package-lock.json ## attack the binary as pages, clients, users and strangers do; run by root and by an ordinary user
	@build/need $(TESTED_WITH)
	@failed=0; \
	export STASIS_LONG=1; \
	build/in-memory go test -vet=off -count 1 -parallel 2 -timeout 60m -run '^TestAttack' ./e2e || failed=1; \
	STASIS_ATTACKED="ordinary user" build/in-memory go test -vet=off -count 1 -parallel 2 -timeout 60m -run '^TestAttack' ./e2e || failed=1; \
	exit $$failed

# ONLY=private selects guards by a part of their names, with go run ./e2e/guards -list.
ONLY ?=

.PHONY: attack-guards
attack-guards: e2e/clients/node_modules/.package-lock.json ## take out each guard against attacks (ONLY=name for some), and expect its test to fail
	@build/need $(TESTED_WITH)
	@go run ./e2e/guards -only '$(ONLY)'

.PHONY: types
types: clients/typescript/node_modules/.package-lock.json ## write the types of the TypeScript client from openapi.yaml
	@cd clients/typescript && npm run --silent types

.PHONY: fidelity
fidelity: build e2e/clients/node_modules/.package-lock.json ## test what survives a restore, with Stasis and with other tools, and write docs/fidelity.md
	@build/need chromium chromium-headless-shell php dokuwiki phpliteadmin
	@go run ./e2e/fidelity

# Measurements need the whole machine: run nothing else meanwhile.
.PHONY: bench
bench: build e2e/clients/node_modules/.package-lock.json $(TOXI)-$(TOXI_VER) ## measure speed, size and growth, of Stasis and of other tools, and write docs/benchmarks.md
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench

.PHONY: bench-against
bench-against: build e2e/clients/node_modules/.package-lock.json ## compare with an older binary (OLD=binary), both measured in the same rounds
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench -against "$(OLD)" -only restore,save,cycle

.PHONY: pictures
pictures: build e2e/clients/node_modules/.package-lock.json ## make the pictures of the console and the live view in docs/pictures
	@build/need chromium chromium-headless-shell
	@go run ./e2e/pictures

COUNT ?= 2000

.PHONY: typing
typing: build e2e/clients/node_modules/.package-lock.json ## type into a field as soon as its page has loaded, COUNT=2000 times, and count lost characters
	@build/need chromium chromium-headless-shell
	@go run ./e2e/typing -count $(COUNT)

SOAK ?= 30m
RESTORES ?= 2000

.PHONY: soak
soak: build e2e/clients/node_modules/.package-lock.json ## start, save and kill sessions for SOAK=30m, restore RESTORES=2000 times in a row, and check what is left behind
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench -soak $(SOAK) -restores $(RESTORES)

GUARDED ?= 1000
# Restores of full Chrome are at most as many as GUARDED.
CHROME_RESTORES ?= $(GUARDED)

.PHONY: bench-guards
bench-guards: build e2e/clients/node_modules/.package-lock.json ## measure what the guards among strangers cost, in GUARDED=1000 rounds with CHROME_RESTORES=1000 restores of full Chrome, and write docs/guards.md (AGAINST=binary compares with an older one, ALONE=1 prints what each guard costs)
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench -guards -rounds $(GUARDED) -chrome-restores $(CHROME_RESTORES) -against "$(AGAINST)" $(if $(ALONE),-alone)

COMMANDS ?= 1000

.PHONY: bench-hop
bench-hop: build $(S3)-$(S3_VER) ## time COMMANDS=1000 commands through the node of their session and through another one, and write docs/cluster-cost.md
	@build/need chromium chromium-headless-shell postgresql
	@go run ./e2e/bench -hop -rounds $(COMMANDS)

# The last commit before PostgreSQL and nodes.
BASE   ?= 027d391958c054bae5bc2479794d35e5f929cee2
STARTS ?= 100

.PHONY: bench-start
bench-start: build ## compare STARTS=100 starts of a daemon without flags with those of the commit BASE, from before there were nodes, and write docs/cluster-cost.md
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench -base $(BASE) -rounds $(STARTS)

STRANGERS ?= 60m

.PHONY: strangers
strangers: build e2e/clients/node_modules/.package-lock.json ## have two users work for STRANGERS=60m, beside a hostile one for half of it, and write docs/guards.md
	@build/need chromium chromium-headless-shell
	@go run ./e2e/bench -strangers $(STRANGERS)

# The same tests as in `make test`, without limits on their size.
.PHONY: torture
torture: $(S3)-$(S3_VER) ## kill 200 saves and 100 daemons; flip every bit of a snapshot and truncate it at every byte
	@STASIS_TORTURE=1 go test -count 1 -timeout 60m -v -run 'TestKilled|TestDamage$$|TestRewrapWithFaults|TestCopy$$|TestStore$$' ./e2e/torture ./snapshot/...
	@build/need chromium chromium-headless-shell
	@STASIS_TORTURE=1 go test -count 1 -timeout 60m -v -run 'TestFaultKilledUnderLoad$$' ./e2e

# One process is all nodes, so their run directories and the server's connections need files.
.PHONY: scale
scale: ## run 200 nodes with 20,000 simulated sessions on one PostgreSQL, and write docs/scale.md (SCALE="-nodes 20 …" changes the sizes)
	@build/need postgresql
	@ulimit -n $$(ulimit -H -n); go run ./e2e/scale $(SCALE)

# These run in network namespaces, which only root may make.
.PHONY: cluster
cluster: build e2e/clients/node_modules/.package-lock.json $(S3)-$(S3_VER) ## run three nodes, kill one and drain one; a session continues on the others
	@build/need chromium-headless-shell postgresql iproute2 nftables curl
	@build/in-memory go run ./e2e/cluster -story

.PHONY: cluster-torture
cluster-torture: build $(S3)-$(S3_VER) ## have parts of a cluster fail 50 times under load, and write docs/cluster-torture.md (CLUSTER="-rounds 5 …" changes what)
	@build/need chromium-headless-shell postgresql iproute2 nftables
	@build/in-memory go run ./e2e/cluster $(CLUSTER)

UPGRADES ?= 5

.PHONY: cluster-upgrade
cluster-upgrade: build $(S3)-$(S3_VER) ## replace all nodes of a cluster by another version UPGRADES=5 times under load, and write docs/cluster-upgrade.md
	@build/need chromium-headless-shell postgresql iproute2 nftables
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)-next' -o bin/stasis-next ./cmd/stasis
	@build/in-memory go run ./e2e/cluster -upgrades $(UPGRADES) $(CLUSTER)

FUZZTIME ?= 30s

# Go fuzzes one target at a time. Failing input is kept under testdata/fuzz.
.PHONY: fuzz
fuzz: ## fuzz every parser for FUZZTIME=30s
	@git grep -o 'func Fuzz[A-Za-z0-9]*(f \*testing.F)' -- '*_test.go' | sed -E 's/^(.*)\/[^/]*:func (Fuzz[A-Za-z0-9]*).*/\1 \2/' | sort | \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "./$$package" | grep -vE '^(fuzz: elapsed|PASS|ok)' || [ $${PIPESTATUS[0]} = 0 ]; \
	done

.PHONY: lines
lines: ## count the lines that are linked into the binary, by package
	@build/lines

.PHONY: bench-go
bench-go: ## run the Go benchmarks of the hot paths: multiplexer, archives, diffs
	@go test -run '^$$' -bench . -benchmem ./browser/mux ./snapshot ./state

.PHONY: install
install: build ## install bin/stasis as /usr/local/bin/stasis, with the completions of bash and zsh (DESTDIR and PREFIX change the place)
	@install -D -m 0755 bin/stasis '$(DESTDIR)$(PREFIX)/bin/stasis'
	@install -D -m 0644 cmd/stasis/completion/stasis.bash '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/stasis'
	@install -D -m 0644 cmd/stasis/completion/stasis.zsh '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_stasis'

PREFIX ?= /usr/local

.PHONY: release
release: $(SBOM)-$(SBOM_VER) ## build dist/: binaries for Linux and macOS, Debian packages, an SBOM, checksums
	@packaging/release '$(VERSION)' '$(LDFLAGS)' '$(SBOM)-$(SBOM_VER)'

.PHONY: clean
clean: ## remove everything that was built and installed in this folder
	@rm -rf bin dist e2e/clients/node_modules clients/typescript/node_modules clients/typescript/dist

# npm writes this file last. It is older than the lockfile exactly when the lockfile has
# changed since the installation.
%/node_modules/.package-lock.json: %/package-lock.json
	@echo "installing what $* needs with npm"
	@cd $* && npm ci --ignore-scripts --loglevel=error
	@touch $@

$(LINT)-$(LINT_VER):
	@echo "building golangci-lint $(LINT_VER)"
	@GOBIN=$(CURDIR)/bin/tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VER)
	@mv $(LINT) $@

$(DEAD)-$(DEAD_VER):
	@echo "building deadcode $(DEAD_VER)"
	@GOBIN=$(CURDIR)/bin/tools go install golang.org/x/tools/cmd/deadcode@v$(DEAD_VER)
	@mv $(DEAD) $@

$(S3)-$(S3_VER):
	@echo "building versitygw $(S3_VER)"
	@GOBIN=$(CURDIR)/bin/tools go install github.com/versity/versitygw/cmd/versitygw@v$(S3_VER)
	@mv $(S3) $@

$(SBOM)-$(SBOM_VER):
	@echo "building cyclonedx-gomod $(SBOM_VER)"
	@GOBIN=$(CURDIR)/bin/tools go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v$(SBOM_VER)
	@mv $(SBOM) $@

$(TOXI)-$(TOXI_VER):
	@echo "building toxiproxy $(TOXI_VER)"
	@GOBIN=$(CURDIR)/bin/tools go install github.com/Shopify/toxiproxy/v2/cmd/server@v$(TOXI_VER)
	@mv bin/tools/server $@
