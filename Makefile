# All targets need only Go, git and make. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

BIN       := $(CURDIR)/bin
LOCAL     := $(BIN)/pergola-local
LANDSCAPE ?= landscapes/local
# Pods of the local clusters: run, play, or auto (run if this machine allows it).
PODS      ?= auto

# The public demonstration key of landscapes/local precedes the user's own key.
ifeq ($(LANDSCAPE),landscapes/local)
export SOPS_AGE_KEY_FILE := $(CURDIR)/landscapes/local/.sops/age.key
unexport SOPS_AGE_KEY
endif

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/pergola
	@hack/build.sh $(BIN)/pergola ./cmd/pergola

.PHONY: demo
demo: demo-parts build local-up ## apply a landscape on real API servers, change it, repair drift, sync it from Git
	@hack/demo.sh

.PHONY: demo-parts
demo-parts:
	@echo "The demonstration: 1. build pergola, 2. build and start the local clusters (the first time 4 to 12 minutes on two cores, then 10 seconds), 3. run its steps (four to eight minutes)."

.PHONY: demo-recover
demo-recover: build $(LOCAL) ## lose all clusters and restore them from Git, etcd snapshots and a backup (own clusters, Linux)
	@hack/demo/recover.sh

.PHONY: demo-rotation
demo-rotation: build $(LOCAL) ## rotate all credentials of the Garden while a client writes to it (Linux, after make demo)
	@hack/demo/rotation.sh

.PHONY: demo-end
demo-end: build $(LOCAL) ## delete a Garden with a living control plane, and check the runtime cluster (own cluster, Linux)
	@hack/demo/end.sh

.PHONY: check
check: ## vet, lint, check generated files, run tests without API servers
	@hack/test.sh check

.PHONY: test
test: ## run check, and tests on real API servers; samples of long tests (hack/testselection/tests.txt)
	@hack/test.sh test

.PHONY: test-all
test-all: ## all tests, including those that the others skip; PART=NAME runs one part
	@hack/test-all.sh $(PART)

.PHONY: bench
bench: build $(LOCAL) ## measure speed and memory beside a peer or a floor in the same run
	@hack/bench.sh

.PHONY: generate
generate: ## regenerate deep copies, CRDs, tables of fields, the CUE base and the list of rules
	@hack/generate/generate.sh
	@go run ./render/strict/generate render/strict/kubernetes.tsv
	@go run ./schemas/unread/generate schemas/unread/fields.tsv
	@go run ./schemas/generate schemas/base

.PHONY: golden
golden: build ## record the render of landscapes/local, for review with git diff
	@$(BIN)/pergola golden $(LANDSCAPE) --update

.PHONY: golden-check
golden-check: build ## compare the render of landscapes/local with its record
	@$(BIN)/pergola golden $(LANDSCAPE)

.PHONY: bench-engine
bench-engine: build $(LOCAL) ## measure the engine against Flux and against bare patches
	@hack/bench/engine.sh

.PHONY: bench-living
bench-living: build $(LOCAL) ## measure a living virtual garden with three seeds and six Shoots (Linux)
	@hack/bench/living.sh

.PHONY: screens
screens: build $(LOCAL) ## draw docs/pictures from real runs on local clusters of their own
	@hack/screens.sh

.PHONY: lint
lint: ## go vet, staticcheck and the linter of texts
	@hack/lint.sh

.PHONY: local-up
local-up: $(LOCAL) ## start the local clusters; PODS=run, play or auto selects living or played pods
	@$(LOCAL) up --pods $(PODS)
	@hack/demo/serve.sh

.PHONY: local-down
local-down: $(LOCAL) ## stop the local clusters, and keep their data
	@hack/stop-demo.sh
	@$(LOCAL) down

.PHONY: local-status
local-status: $(LOCAL) ## show the local clusters
	@$(LOCAL) status || [ $$? -eq 1 ] # a stopped part is not an error of make

.PHONY: local-clean
local-clean: $(LOCAL) ## stop the local clusters and remove their data
	@hack/stop-demo.sh
	@$(LOCAL) clean

.PHONY: clean
clean: local-clean ## remove everything that was built or started here
	@rm -rf $(BIN) hack/local/bin

.PHONY: $(LOCAL)
$(LOCAL):
	@hack/slowly.sh "Building pergola-local, which runs the local clusters: a minute or two the first time …" go -C hack/local build -trimpath -o $(LOCAL) .
