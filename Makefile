# make demo       a tour of the library, on Docker where an engine answers, else on this machine
# make test       what proves the code on this machine, in some minutes
# make test-all   what make test leaves out because it takes long
# make nightly    everything, as often as the rarest failures took
# make soak       a hundred boxes at work, then 300 New and Close: nothing is lost and nothing grows
# make fuzz       each fuzz target for a minute
# make faults     boxes that work while faults hit them, and a table of what came of it; ROUNDS=1000
#                 makes so many of each kind of box
# make cluster    a Kubernetes cluster on this machine, of NODES=1 nodes, for kubectl or for tests,
#                 until ^C
#
# All prepare what is missing. With CI=true nothing may be missing: see .ci/run.

.PHONY: demo test test-all nightly soak fuzz faults bench comparison lint generate prepare \
	image image-if-engine cluster

demo: image-if-engine
	@bash .ci/run modules ./examples/quickstart
	@go run ./examples/quickstart

test test-all nightly: prepare $(if $(filter true,$(CI)),image,image-if-engine)
	@bash .ci/run $@

# SOAK_BOXES boxes (100) for SOAK_TIME (10m), then SOAK_ROUNDS (300) of New and Close.
soak: image
	SANDSHELL_TEST=full go test -count=1 -timeout 3h -v -run '^TestSoak$$' ./sshbox

# Each target for FUZZ_TIME. Go keeps what fails in the package's testdata/fuzz: it is a case from
# then on, to be committed. FuzzUnpack and FuzzPack take other ways through package os each time:
# minimizing would not end.
FUZZ_TIME ?= 1m
fuzz:
	set -e; \
	packages=$$(grep -rl --include=*_test.go '^func Fuzz' . | xargs -n 1 dirname | sort -u); \
	for package in $$packages; do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) \
				-fuzzminimizetime 10x -parallel 2 $$package; \
		done; \
	done

# 200 rounds in containers, 50 over an sshd without boxd and 50 with it. SANDSHELL_TEST_SEED, as a
# run prints it, makes the same rounds again.
faults: prepare image-if-engine
	ROUNDS=$(ROUNDS) bash .ci/run faults

# The project's benchmarks, each beside its floor.
bench: image-if-engine
	go test -run '^$$' -bench . -timeout 60m ./bench | go run ./bench/table

# What sandshell and others do in the same situations, as the table of docs/comparison.md.
comparison: prepare image-if-engine
	SANDSHELL_TEST=all go test -count=1 -v -run TestComparison ./bench/comparison

# The kubeconfig that it prints is for kubectl, and for tests in SANDSHELL_TEST_KUBECONFIG. See
# internal/test/kubetest/cluster for what it takes from its input.
NODES ?= 1
cluster: prepare image
	@testdata/kube/build >/dev/null
	CGO_ENABLED=0 go run ./internal/test/kubetest/cluster -nodes $(NODES)

lint:
	bash .ci/run lint

# boxd, compiled and compressed into internal/boxd/bin. docs/architecture.md says when to commit it.
generate:
	go generate ./internal/boxd/bin

# The Debian packages that the tests drive; only where root can install them.
prepare:
	@bash .ci/run prepare

# The images sandshell-test, sandshell-busybox and sandshell-shell, made where they are missing or
# old.
image:
	@testdata/image/build
	@testdata/bare/build

image-if-engine:
	@testdata/image/build --if-engine
	@testdata/bare/build --if-engine
