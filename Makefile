# CI runs these targets and nothing else. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
TOOLS := $(CURDIR)/.cache/tools
LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
VENV := $(CURDIR)/.cache/venv
FUZZTIME ?= 60s
SEEDS ?= 20000
FIRST ?= 1
CASES ?= all
# The binary alone is built with its profile (cmd/moqmesh/default.pgo); tests share what they have compiled.
export GOFLAGS += -pgo=off

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: build
build: ## the binary, bin/moqmesh
	go build -pgo=auto -trimpath -o bin/moqmesh ./cmd/moqmesh

.PHONY: verify
verify: check test race e2e interop ## everything that CI runs

.PHONY: check
check: $(LINT) ## tier 0: vet, format, linters, import graph, generated pages
	go vet ./...
	go vet -tags e2e,interop,drill,rust ./test/...
	$(LINT) run ./...
	go test ./internal/archtest

.PHONY: test
test: ## tiers 1 to 3: unit, scripted peer, fuzz corpora, clusters in virtual time
	go test ./...

.PHONY: race
race: ## the same under the race detector
	go test -race -timeout 20m ./...

.PHONY: sim
sim: ## tier 3 at length: random clusters from SEEDS seeds (20000), beginning with FIRST (1)
	go test -count=1 -timeout 0 ./internal/sim -run TestSeeds -seeds $(SEEDS) -first $(FIRST)

.PHONY: e2e
e2e: .cache/prometheus/.done .cache/network ## tier 4: the built binary, driven as a user drives it
	go build -race -o bin/moqmesh-race ./cmd/moqmesh
	GORACE="halt_on_error=1 atexit_sleep_ms=0" MOQMESH_BIN=$(CURDIR)/bin/moqmesh-race \
		PROMETHEUS_DIR=$(CURDIR)/.cache/prometheus/usr/bin go test -count=1 -timeout 30m -tags e2e ./test/e2e

.PHONY: interop
interop: build .cache/js/.done .cache/venv/.done .cache/ffmpeg ## tier 5: the Rust and JavaScript libraries, both directions
	MOQMESH_BIN=$(CURDIR)/bin/moqmesh MOQMESH_JS=$(CURDIR)/.cache/js MOQMESH_PYTHON=$(VENV)/bin/python \
		go test -count=1 -timeout 25m -tags interop ./test/interop

.PHONY: rust
rust: build .cache/js/.done .cache/venv/.done ## meshes with the Rust relay, whose binary MOQ_RELAY names (cargo install moq-relay)
	MOQ_RELAY=$(MOQ_RELAY) MOQMESH_BIN=$(CURDIR)/bin/moqmesh MOQMESH_JS=$(CURDIR)/.cache/js MOQMESH_PYTHON=$(VENV)/bin/python \
		go test -count=1 -timeout 15m -tags e2e,rust -v ./test/e2e -run TestRust

.PHONY: drill
drill: build ## the outage drill: 500 viewers, an auth server that fails in every way; five minutes, figures of docs/reliability.md
	MOQMESH_BIN=$(CURDIR)/bin/moqmesh go test -count=1 -timeout 15m -tags drill -v ./test/drill

.PHONY: longlink
longlink: build ## checks the emulated link, then what QUIC and qmux carry over it (root, Linux); half an hour, tables of docs/long-links.md
	MOQMESH_BIN=$(CURDIR)/bin/moqmesh go test -count=1 -timeout 30m -p 1 -tags drill -v ./internal/linklab ./test/longlink

.PHONY: bench
bench: build ## benchmarks; docs/benchmarks.md says how to read them
	go test -run '^$$' -bench . -benchmem ./route ./media ./lite/... ./origin ./bench
	go run ./bench/compare -moqmesh bin/moqmesh -cases $(CASES) -repeats $(or $(REPEATS),1)

.PHONY: compare
compare: build ## moqmesh and the Rust relay (RUST=/path/to/moq-relay) in turns, REPEATS (5) times, CASES (all); the table goes into docs/benchmarks.md
	@test -n "$(RUST)" || { echo "make compare: name the binary to compare with: make compare RUST=/path/to/moq-relay" >&2; exit 1; }
	@test -x "$(RUST)" || { echo "make compare: no program at $(RUST)" >&2; exit 1; }
	@test -n "$(KEEP)" || rm -f bin/compare.jsonl # KEEP=1 adds to the runs that are there
	go run ./bench/compare -moqmesh bin/moqmesh -rust "$(RUST)" -cases $(CASES) -repeats $(or $(REPEATS),5) \
		-record bin/compare.jsonl -write docs/benchmarks.md

.PHONY: pgo
pgo: build ## cmd/moqmesh/default.pgo anew: where a relay under load spends its time, by which the compiler optimises
	rm -rf bin/profiles && mkdir -p bin/profiles
	go run ./bench/compare -moqmesh bin/moqmesh -cases fanout-300,audio-100,audio-1,bulk -repeats 1 -window 15s -profiles bin/profiles
	cd bin && go tool pprof -proto -output ../cmd/moqmesh/default.pgo moqmesh profiles/*.pprof

.PHONY: mutate
mutate: ## breaks each rule of routing and failover and demands that a test notices (ONLY=R24: one rule)
	go run ./internal/mutate -only '$(ONLY)'

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (60s)
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: clean
clean: ## remove what the targets above made
	rm -rf bin .cache

$(LINT):
	mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) GOFLAGS=-mod=mod go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

.cache/js/.done: test/interop/clients/package.json test/interop/clients/package-lock.json $(wildcard test/interop/clients/*.mjs)
	mkdir -p .cache/js
	cp test/interop/clients/*.mjs test/interop/clients/package*.json test/interop/clients/.npmrc .cache/js/
	cd .cache/js && npm ci --no-audit --no-fund && node fit.mjs
	touch $@

.cache/venv/.done: test/interop/clients/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r test/interop/clients/requirements.txt
	touch $@

# Debian's package is unpacked here, so that no service is installed.
.cache/prometheus/.done:
	rm -rf .cache/prometheus && mkdir -p .cache/prometheus
	apt-get update -q && cd .cache/prometheus && apt-get download -q prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb
	touch $@

# For hosts of their own, and to cut their cables.
.cache/network:
	{ command -v ip && command -v iptables; } >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends iproute2 iptables; }
	mkdir -p .cache && touch $@

.cache/ffmpeg:
	command -v ffmpeg >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ffmpeg; }
	mkdir -p .cache && touch $@
