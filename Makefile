# make demo       a tour of the library, on Docker where an engine answers, else on this machine
# make test       what proves the code on this machine, in some minutes
# make test-all   what make test leaves out because it takes long
# make nightly    everything, as often as the rarest failures took
#
# All prepare what is missing. With CI=true nothing may be missing: see .ci/run.

.PHONY: demo test test-all nightly bench lint generate prepare image image-if-engine

demo: image-if-engine
	go run ./examples/quickstart

test test-all nightly: prepare $(if $(filter true,$(CI)),image,image-if-engine)
	bash .ci/run $@

# The project's benchmarks, each beside its floor.
bench: image-if-engine
	go test -run '^$$' -bench . -timeout 60m ./bench | go run ./bench/table

lint:
	bash .ci/run lint

# boxd, compiled and compressed into sshbox/boxd/bin: to be committed with a change of its sources.
generate:
	go generate ./sshbox/boxd/bin

# The Debian packages that the tests drive; only where root can install them.
prepare:
	bash .ci/run prepare

# The images sandshell-test, sandshell-busybox and sandshell-shell, made where they are missing or old.
image:
	testdata/image/build
	testdata/bare/build

image-if-engine:
	testdata/image/build --if-engine
	testdata/bare/build --if-engine
