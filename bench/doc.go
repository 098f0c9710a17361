// Package bench measures sandshell, each number beside its floor: the least that the same work
// costs without the library, over the same transport. "make bench" runs it and prints one table.
//
// A machine's speed changes from one second to the next, so floor and ours take turns, in one
// benchmark: ratios can be trusted, durations cannot. The benchmarks report medians.
//
// Each benchmark has a variant for each transport: local is a LocalBox beside a pseudo-terminal of
// creack/pty; ssh is an SSHBox beside a plain session of x/crypto/ssh, both with an OpenSSH server
// on loopback of the benchmark's own; docker is a DockerSSHBox beside a plain session with an sshd
// on the streams of another container of the same image; kube is a KubeBox beside execs in another
// pod of the same image, by client-go, on a cluster that internal/test/kubetest starts. Where sshd,
// an engine, the image or a built Kubernetes is missing, they skip and say so.
package bench
