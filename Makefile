# Everything needs Go, git and make only. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

BIN       := $(CURDIR)/bin
LOCAL     := $(BIN)/pergola-local
LANDSCAPE ?= landscapes/local
# What becomes of the local clusters' pods: run, play, or auto (run where this machine allows it).
PODS      ?= auto

# The demonstration key of landscapes/local, whatever key the user has for other landscapes: a real one keeps its key out of Git.
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
demo: demo-parts build local-up ## the whole way on real API servers: apply a landscape, change it, repair drift, sync it from Git
	@hack/demo.sh

.PHONY: demo-parts
demo-parts:
	@echo "The demonstration: 1. build pergola, 2. build and start the local clusters (the first time 4 to 12 minutes on two cores, then 10 seconds), 3. the way itself (three to six minutes)."

.PHONY: demo-recover
demo-recover: build $(LOCAL) ## lose all clusters and have them again, from Git, snapshots of etcd and a backup, on clusters of its own (Linux)
	@hack/demo/recover.sh

.PHONY: demo-rotation
demo-rotation: build $(LOCAL) ## rotate all credentials of the demonstration's Garden, while a client writes to the virtual garden (Linux, after make demo)
	@hack/demo/rotation.sh

.PHONY: demo-end
demo-end: build $(LOCAL) ## delete a Garden whose control plane runs, and compare the runtime cluster with before, on a cluster of its own (Linux)
	@hack/demo/end.sh

.PHONY: check
check: ## vet, lint, check generated files, tests without API servers
	@hack/test.sh check

.PHONY: test
test: ## the same and tests on real API servers; of what takes long a sample (hack/speeds/speeds.txt)
	@hack/test.sh test

.PHONY: test-all
test-all: ## all tests, with what the others leave out; PART=NAME runs one part
	@hack/test-all.sh $(PART)

.PHONY: bench
bench: build $(LOCAL) ## speed and memory, each beside a peer or a floor in the same run
	@hack/bench.sh

.PHONY: generate
generate: ## regenerate deep copies, CRDs, the table of Kubernetes' fields and the CUE base
	@hack/generate/generate.sh
	@go run ./render/strict/generate render/strict/kubernetes.tsv
	@go run ./schemas/unread/generate schemas/unread/fields.tsv
	@go run ./schemas/generate schemas/base

.PHONY: golden
golden: build ## record the render of landscapes/local anew, to be reviewed with git diff
	@$(BIN)/pergola golden $(LANDSCAPE) --update

.PHONY: golden-check
golden-check: build ## compare the render of landscapes/local with the recorded one
	@$(BIN)/pergola golden $(LANDSCAPE)

.PHONY: bench-engine
bench-engine: build $(LOCAL) ## measure the engine against Flux and against bare patches
	@hack/bench/engine.sh

.PHONY: bench-living
bench-living: build $(LOCAL) ## a virtual garden, three seeds and six Shoots that run for real: time and memory (Linux)
	@hack/bench/living.sh

.PHONY: lint
lint: ## go vet and staticcheck
	@hack/lint.sh

.PHONY: local-up
local-up: $(LOCAL) ## start the local clusters; PODS=run, play or auto: whether control planes in them run for real
	@$(LOCAL) up --pods $(PODS)
	@hack/demo/serve.sh

.PHONY: local-down
local-down: $(LOCAL) ## stop the local clusters, keep their data
	@hack/stop-demo.sh
	@$(LOCAL) down

.PHONY: local-status
local-status: $(LOCAL) ## show the local clusters
	@$(LOCAL) status || [ $$? -eq 1 ] # that something is down is an answer, not an error of make

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
