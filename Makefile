# make demo   the main job: an experiment on real commands, to its verdict page
# make test   all tests; the long forms are named in the README
# make models every state of the protocol models, with spin
# make bars   measure what the project set itself and write docs/figures.md; FULL=1 for
#             all of it, some hours; ONLY=lab,artrie.peers for some
GO ?= go
TESTFLAGS ?=

# What make test also runs under the race detector; make race runs everything.
CONCURRENT = ./internal/spawn ./lab/trial ./replset/consensus ./replset/link

.PHONY: demo test models race bench bars lint fmt

demo:
	$(GO) run ./cmd/assay run examples/compressors/compressors.yaml

test:
	$(GO) vet ./...
	$(GO) test $(TESTFLAGS) ./...
	$(GO) test -race $(TESTFLAGS) $(CONCURRENT)
	cd bench/trie && $(GO) vet ./... && $(GO) test $(TESTFLAGS) ./...

models:
	$(GO) run ./models

race:
	$(GO) test -race $(TESTFLAGS) ./lab/... ./internal/... ./replset/... ./artrie/... ./screening/...

bench:
	$(GO) run ./bench/lab
	cd bench/trie && $(GO) run .

bars:
	$(GO) run ./bench/bars $(if $(FULL),-full) $(if $(ONLY),-only $(ONLY))

fmt:
	gofmt -l -w .
