// Package bench measures sandshell. Each number stands beside its floor: the least that the same
// work costs without the library, over the same transport. "make bench" runs the benchmarks and
// prints one table.
//
// A machine's speed changes from one second to the next, so the floor and the library take turns in
// one benchmark. Trust the ratios, not the durations. The benchmarks report medians.
//
// Each benchmark has a variant for each transport:
//
//   - local: a LocalBox, beside a pseudo-terminal of creack/pty
//   - ssh: an SSHBox, beside a plain session of x/crypto/ssh; both use an OpenSSH server on
//     loopback that the benchmark starts
//   - docker: a DockerSSHBox, beside a plain session with an sshd on the streams of another
//     container of the same image
//   - kube: a KubeBox, beside execs by client-go in another pod of the same image, on a cluster
//     that internal/test/kubetest starts
//
// BenchmarkDistant measures calls over a relay (package linktest) that delays each way by 25 ms, in
// round trips: T is 50 ms. BenchmarkSlow copies over a relay that carries 1 Mbit/s. Both have the
// transports ssh, boxd and docker. To run them alone:
//
//	go test -run '^$' -bench 'Distant|Slow' -benchtime 1x ./bench | go run ./bench/table
//
// If sshd, an engine, the image or a built Kubernetes is missing, a benchmark skips and says so.
package bench
