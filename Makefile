# make demo   the main job: an experiment on real commands, to its verdict page
# make test   all tests; the long forms are named in the README
GO ?= go
TESTFLAGS ?=

.PHONY: demo test race bench lint fmt

demo:
	$(GO) run ./cmd/assay run examples/compressors/compressors.yaml

test:
	$(GO) vet ./...
	$(GO) test $(TESTFLAGS) ./...

race:
	$(GO) test -race $(TESTFLAGS) ./lab/... ./internal/...

bench:
	$(GO) run ./bench/lab

fmt:
	gofmt -l -w .
