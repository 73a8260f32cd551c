# What a developer and CI type. "make" alone lists the targets.

GO      ?= go
FUZZTIME ?= 30s
CHAOSTIME ?= 10m
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOOL    := $(GO) tool -modfile=tools/go.mod
# Runs go test and fails when a test is skipped; see tools/noskip.
TEST    := bin/noskip

# Packages whose tests stand on real servers run one at a time: the servers need
# the cores, and timings should mean something.
ALL         = $(shell $(GO) list ./...)
INTEGRATION = $(shell $(GO) list -test -f '{{$$p := .ImportPath}}{{range .Deps}}{{if eq . "github.com/walrelay/walrelay/test/ground"}}{{$$p}}{{end}}{{end}}' ./... | sed -n 's/\.test$$//p')
UNIT        = $(filter-out $(INTEGRATION),$(ALL))
# Where goroutines meet, without a server of minutes.
RACE        = $(filter %/ack %/event %/ops %/relay %/publish %/slot %/outbox %/capture %/hlc %/stage %/inbox,$(ALL))

.DEFAULT_GOAL := help
.PHONY: help deps build test test-unit test-integration race lint format fuzz bench chaos demo demo-mongo examples examples-servers clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what the tests need beside Go (as root through apt, else say what to type)
	@tools/deps.sh

build: ## build bin/walrelay, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/walrelay ./cmd/walrelay

test: lint test-unit race test-integration ## all that CI runs

test-unit: bin/noskip ## tests without servers, a few seconds
	cd tools && $(GO) test ./...
	$(TEST) -p 2 -timeout 5m $(UNIT)

test-integration: bin/noskip deps ## tests on real Postgres and Kafka
	$(TEST) -p 1 -timeout 20m $(INTEGRATION)

race: bin/noskip deps ## the rooms with goroutines under the race detector
	$(TEST) -race -p 1 -timeout 10m $(RACE)

lint: ## vet, staticcheck, gofumpt, go fix
	$(GO) vet ./...
	cd tools && $(GO) vet ./...
	$(TOOL) staticcheck ./...
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 $(TOOL) gofumpt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make format:"; echo "$$unformatted"; exit 1; fi
	$(GO) fix -diff ./...

format: ## gofumpt and go fix
	git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 $(TOOL) gofumpt -w
	$(GO) fix ./...

fuzz: ## each fuzz target for FUZZTIME (default 30s)
	tools/fuzz.sh $(FUZZTIME)

bench: deps ## measure against real servers
	$(GO) run ./test/bench

chaos: bin/noskip deps ## kill relays on the outbox table for CHAOSTIME (default 10m) instead of a minute
	WALRELAY_TEST_CHAOS=$(CHAOSTIME) $(TEST) -count=1 -timeout 2h ./test/tablechaos

demo: ## see it work: servers, an application, the relay, an account
	CGO_ENABLED=0 GO=$(GO) $(GO) run ./test/demo

demo-mongo: ## the same with MongoDB in place of Postgres
	CGO_ENABLED=0 GO=$(GO) $(GO) run ./test/demo mongo

examples: ## the two services of examples/ at work, with crashes and an account
	CGO_ENABLED=0 GO=$(GO) $(GO) run ./test/examples

examples-servers: ## servers and relay for them, until ctrl-C
	CGO_ENABLED=0 GO=$(GO) EXAMPLES_STAY=1 $(GO) run ./test/examples

clean: ## remove what was built; fetched servers stay in .cache
	rm -rf bin
	$(GO) clean -testcache

# Cheap when nothing has changed, so always asked for.
.PHONY: bin/noskip
bin/noskip:
	@$(GO) build -C tools -o ../bin/noskip ./noskip
