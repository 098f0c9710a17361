//go:build linux

package main

import "fmt"

// containerdConfig returns a configuration for containerd 1.6 and later. It keeps the kernel's OOM
// scores at or above this process's own, because lower ones would need CAP_SYS_RESOURCE.
func containerdConfig(root, state, socket string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = "/run/cni"
`, root, state, socket, pauseImage, cniPlugins)
}

func kubeletConfig(name, group string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
readOnlyPort: 0
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /run/kube/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: /run/kube/pki/%[1]s.crt
tlsPrivateKeyFile: /run/kube/pki/%[1]s.key
containerRuntimeEndpoint: unix:///run/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s/%[1]s
failSwapOn: false
failCgroupV1: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
nodeLeaseDurationSeconds: 8
evictionHard: {memory.available: 100Mi, nodefs.available: "1%%", imagefs.available: "1%%", nodefs.inodesFree: "1%%"}
imageGCHighThresholdPercent: 100
clusterDNS: [%[3]s]
clusterDomain: cluster.local
resolvConf: ""
serializeImagePulls: false
`, name, group, dnsAddress)
}

// networkConfig returns a CNI configuration with the node's pods on a bridge, and a route to the
// pods of other nodes. The cluster has no outside network, so no addresses are translated.
func networkConfig(i int) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni-addresses"}}]}
`, podRange(i))
}
