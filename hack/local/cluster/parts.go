// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/hack/local/binaries"
	"github.com/pergola-dev/pergola/hack/local/pki"
	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Parts of a cluster, each a process. The clusters of a folder share etcd.
const (
	PartEtcd              = "etcd"
	PartAPIServer         = "kube-apiserver"
	PartControllerManager = "kube-controller-manager"
	PartScheduler         = "kube-scheduler"
	PartKwok              = "kwok"
	// PartStages is this program itself; it runs a second kwok for the kinds that CRDs bring.
	PartStages = "stages"
)

// partExtensions is that second kwok. It is not a part itself: PartStages starts and stops it.
const partExtensions = "kwok-extensions"

// sharedName is the name under which the shared part has its log, record and keys.
const sharedName = "shared"

// AllParts returns the parts of a cluster with nodes, in starting order.
func AllParts() []string {
	return []string{PartAPIServer, PartControllerManager, PartScheduler, PartKwok, PartStages}
}

// nodelessParts are the parts of a cluster that stores objects but runs no pods.
func nodelessParts() []string { return []string{PartAPIServer, PartControllerManager} }

// ParseParts parses the names of the --parts flag; the prefix "kube-" is optional. It always adds
// the API server, and to kwok the keeper of its Stages.
func ParseParts(names []string) ([]string, error) {
	chosen := []string{PartAPIServer}
	for _, name := range names {
		full := name
		if !slices.Contains(AllParts(), full) {
			full = "kube-" + name
		}
		if !slices.Contains(AllParts(), full) {
			return nil, fmt.Errorf("unknown part %q: parts are %s", name, strings.Join(AllParts(), ", "))
		}
		if full == PartKwok || full == PartStages {
			chosen = append(chosen, PartKwok, PartStages)
		}
		chosen = append(chosen, full)
	}
	return slices.DeleteFunc(AllParts(), func(part string) bool { return !slices.Contains(chosen, part) }), nil
}

// binaryNames returns the executables that the parts need.
func binaryNames(parts []string) []string {
	names := []string{binaries.Etcd}
	for _, part := range parts {
		switch {
		case part == PartStages:
		case part == PartAddons:
			// The executables of pods, and the nodes that run them.
			names = append(names, binaries.Node, PartAPIServer, PartControllerManager, PartScheduler)
		default:
			names = append(names, part)
		}
	}
	return names
}

// partEnvironment is the whole environment of parts: no proxies, and not the user's kubeconfig.
func partEnvironment(dir statedir.Dir) []string {
	env := []string{"HOME=" + string(dir), "TZ=UTC", "PATH=/usr/bin:/bin"}
	if temporary := os.Getenv("TMPDIR"); temporary != "" {
		env = append(env, "TMPDIR="+temporary)
	}
	return env
}

// partSpec returns how to start one part of a cluster.
func (m *Manager) partSpec(c *statedir.Cluster, part string) process.Spec {
	spec := process.Spec{
		Binary: m.executablePaths[part], Env: partEnvironment(m.Dir), Log: m.Dir.Log(c.Name, part),
		// Most parts read the API server's address from a kubeconfig, only at their start.
		Salt: c.Server(),
	}
	switch part {
	case PartAPIServer:
		spec.Args = m.apiServerArgs(c)
	case PartControllerManager:
		spec.Args = m.controllerManagerArgs(c)
	case PartScheduler:
		spec.Args = []string{"--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, PartScheduler), "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500"}
	case PartKwok:
		spec.Args = []string{
			"--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, PartKwok), "--config=" + m.Dir.Data(c.Name+"/"+PartKwok+".yaml"),
			manageNodesFlag(c), "--node-lease-duration-seconds=40", "--cidr=" + c.PodCIDR(), "--node-ip=" + c.NodeIP(0),
		}
		spec.Salt += string(m.builtinStages)
	case PartStages:
		spec.Binary, spec.IgnoreBinary = m.LocalExecutable, true
		spec.Salt += string(m.otherStages)
		folder := pki.Folder{Path: m.Dir.PKI(c.Name)}
		spec.Args = []string{
			"keep-stages", "--server=" + c.Server(), "--ca=" + folder.Cert("ca"),
			"--cert=" + folder.Cert(PartStages), "--key=" + folder.Key(PartStages),
			"--kwok=" + m.executablePaths[PartKwok], "--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, PartKwok),
			"--config=" + m.Dir.Data(c.Name+"/"+partExtensions+".yaml"), "--record=" + m.Dir.Record(c.Name, partExtensions),
			"--log=" + m.Dir.Log(c.Name, partExtensions),
		}
		if c.Kubelets > 0 {
			spec.Args = append(spec.Args, "--living")
		}
	default:
		return m.livingSpec(c, part, spec)
	}
	return spec
}

// manageNodesFlag returns kwok's flag for the nodes whose pods it plays.
func manageNodesFlag(c *statedir.Cluster) string {
	if c.Kubelets > 0 {
		return "--manage-nodes-with-annotation-selector=" + fakeNodeAnnotation + "=fake"
	}
	return "--manage-all-nodes=true"
}

func (m *Manager) etcdSpec(state *statedir.State) process.Spec {
	folder := pki.Folder{Path: m.Dir.PKI(sharedName)}
	client := fmt.Sprintf("https://127.0.0.1:%d", state.EtcdPort)
	peer := fmt.Sprintf("https://127.0.0.1:%d", state.EtcdPeerPort)
	return process.Spec{
		Binary: m.executablePaths[binaries.Etcd], Env: partEnvironment(m.Dir), Log: m.Dir.Log(sharedName, PartEtcd),
		Args: []string{
			"--name=local", "--data-dir=" + m.Dir.Data(PartEtcd), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=local=" + peer,
			"--cert-file=" + folder.Cert(PartEtcd), "--key-file=" + folder.Key(PartEtcd),
			"--trusted-ca-file=" + folder.Cert("ca"), "--client-cert-auth",
			"--peer-cert-file=" + folder.Cert(PartEtcd), "--peer-key-file=" + folder.Key(PartEtcd),
			"--peer-trusted-ca-file=" + folder.Cert("ca"), "--peer-client-cert-auth",
		},
	}
}

func (m *Manager) apiServerArgs(c *statedir.Cluster) []string {
	folder, etcd := pki.Folder{Path: m.Dir.PKI(c.Name)}, pki.Folder{Path: m.Dir.PKI(sharedName)}
	modes, kubelets := "RBAC", []string(nil)
	if c.Kubelets > 0 {
		modes, kubelets = "Node,RBAC", []string{
			"--kubelet-client-certificate=" + folder.Cert(kubeletClient), "--kubelet-client-key=" + folder.Key(kubeletClient),
			"--kubelet-certificate-authority=" + folder.Cert("ca"), "--kubelet-preferred-address-types=InternalIP",
		}
	}
	return append([]string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.Port), "--advertise-address=127.0.0.1",
		// A loopback address is not a valid endpoint of the Service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + folder.Cert(PartAPIServer), "--tls-private-key-file=" + folder.Key(PartAPIServer),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", m.etcdPort), "--etcd-prefix=/" + c.Name,
		"--etcd-cafile=" + etcd.Cert("ca"), "--etcd-certfile=" + etcd.Cert(PartAPIServer), "--etcd-keyfile=" + etcd.Key(PartAPIServer),
		"--client-ca-file=" + folder.Cert("ca"), "--authentication-config=" + m.authenticationFile(c), "--authorization-mode=" + modes,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + folder.PublicKey("service-account"),
		"--service-account-signing-key-file=" + folder.Key("service-account"),
		"--service-cluster-ip-range=" + c.ServiceCIDR(),
		"--requestheader-client-ca-file=" + folder.Cert("front-proxy-ca"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + folder.Cert("front-proxy-client"), "--proxy-client-key-file=" + folder.Key("front-proxy-client"),
		"--enable-aggregator-routing=true", "--allow-privileged=true", "--profiling=false", "--shutdown-delay-duration=0s",
	}, kubelets...)
}

func (m *Manager) controllerManagerArgs(c *statedir.Cluster) []string {
	folder := pki.Folder{Path: m.Dir.PKI(c.Name)}
	return []string{
		"--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, PartControllerManager), "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true", "--root-ca-file=" + folder.Cert("ca"),
		"--service-account-private-key-file=" + folder.Key("service-account"),
		"--cluster-signing-cert-file=" + folder.Cert("ca"), "--cluster-signing-key-file=" + folder.Key("ca"),
		"--service-cluster-ip-range=" + c.ServiceCIDR(), "--allocate-node-cidrs=false", "--node-monitor-period=2s",
		// With the default of 20 requests a second the start takes 4 s, a large landscape minutes.
		"--kube-api-qps=500", "--kube-api-burst=500",
	}
}
