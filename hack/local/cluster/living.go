// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/hack/local/binaries"
	"github.com/pergola-dev/pergola/hack/local/pki"
	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Parts of a cluster that runs pods, besides kwok, which plays the other pods: nodes, and the
// addons that their pods need once per cluster.
const (
	PartAddons = "addons"
	// partKubelet is the prefix of the parts of nodes, for example kubelet-0.
	partKubelet = "kubelet-"
)

const (
	addonsUser = "pergola-local:addons"
	// kubeletClient is the user of the API server's requests to kubelets.
	kubeletClient = "kube-apiserver-kubelet-client"
	// livingTaint keeps pods away from nodes that can run only native executables; the label of the
	// same name attracts the others.
	livingTaint = "local.pergola.dev/living"
)

// livingParts returns the additional parts of a cluster with this number of living nodes.
func livingParts(kubelets int) []string {
	if kubelets == 0 {
		return nil
	}
	out := []string{PartAddons}
	for n := range kubelets {
		out = append(out, kubeletPart(n))
	}
	return out
}

func kubeletPart(n int) string { return partKubelet + strconv.Itoa(n) }

// kubeletNumber parses the number of a node's part.
func kubeletNumber(part string) (int, bool) {
	text, found := strings.CutPrefix(part, partKubelet)
	n, err := strconv.Atoi(text)
	return n, found && err == nil
}

// kubeletNode returns the name of the n-th living Node.
func kubeletNode(c *statedir.Cluster, n int) string { return fmt.Sprintf("%s-living-%d", c.Name, n) }

// IsLivingNode reports whether a node runs living pods.
func IsLivingNode(c *statedir.Cluster, node string) bool {
	for n := range c.Kubelets {
		if node == kubeletNode(c, n) {
			return true
		}
	}
	return false
}

// livingCertificates returns the additional certificates of clusters with living pods.
func livingCertificates(c *statedir.Cluster) []pki.Leaf {
	if c.Kubelets == 0 {
		return nil
	}
	out := []pki.Leaf{{Name: PartAddons, User: addonsUser}, {Name: kubeletClient, User: kubeletClient}}
	for n := range c.Kubelets {
		out = append(out, pki.Leaf{Name: kubeletPart(n), User: "system:node:" + kubeletNode(c, n), Groups: []string{"system:nodes"}, Hosts: []string{c.KubeletIP(n)}, ClientAuth: true})
	}
	return out
}

// executables returns the paths of the executables that pods run, by name or image.
func (m *Manager) executables() map[string]string {
	out := map[string]string{}
	for _, name := range []string{binaries.APIServer, binaries.ControllerManager, binaries.Scheduler, binaries.Etcd} {
		out[name] = m.executablePaths[name]
	}
	if _, err := os.Stat(m.PergolaExecutable); err == nil {
		out["pergola"] = m.PergolaExecutable
	}
	maps.Copy(out, m.images)
	return out
}

// executablesFlag passes the executables to program node.
func (m *Manager) executablesFlag() string {
	var pairs []string
	all := m.executables()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, name+"="+all[name])
	}
	return "--executables=" + strings.Join(pairs, ",")
}

// addonsArgs returns the arguments that start the addons of a cluster.
func (m *Manager) addonsArgs(c *statedir.Cluster) []string {
	out := []string{
		"addons", "--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, PartAddons), "--services=" + c.ServiceCIDR(), "--load-balancers=" + c.LoadBalancers(), "--dns=" + c.DNS(),
		"--api-server=" + strings.TrimPrefix(c.Server(), "https://"), "--volumes=" + m.Dir.Data(c.Name+"/volumes"), "--networks=" + m.Dir.Data(c.Name+"/networks"), "--taint=" + livingTaint, m.executablesFlag(),
	}
	if c.Kubelets == 1 {
		out = append(out, "--one-node")
	}
	for _, other := range m.clusters {
		if other != c && other.Kubelets > 0 {
			out = append(out, "--names-of="+m.Dir.PartKubeconfig(other.Name, PartAddons))
		}
	}
	return out
}

// kubeletArgs returns the arguments that start the n-th living node.
func (m *Manager) kubeletArgs(c *statedir.Cluster, n int) []string {
	folder, part := pki.Folder{Path: m.Dir.PKI(c.Name)}, kubeletPart(n)
	labels := []string{livingTaint + "=true"}
	for key, value := range nodeLabels(kubeletNode(c, n), n) {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	return []string{
		"kubelet", "--name=" + kubeletNode(c, n), "--labels=" + strings.Join(labels, ","), "--taint=" + livingTaint, "--address=" + c.KubeletIP(n),
		"--kubeconfig=" + m.Dir.PartKubeconfig(c.Name, part), "--cert=" + folder.Cert(part), "--key=" + folder.Key(part), "--client-ca=" + folder.Cert("ca"),
		"--dns=" + c.DNS(), "--pods=" + c.KubeletPods(n), "--dir=" + m.Dir.Data(filepath.Join(c.Name, part)), m.executablesFlag(),
	}
}

// livingFoundation returns the objects that must exist before the parts of a living cluster start.
func livingFoundation(c *statedir.Cluster) []pathObject {
	if c.Kubelets == 0 {
		return nil
	}
	return []pathObject{
		clusterRoleBinding("pergola-local:kubelet-client", "system:kubelet-api-admin", kubeletClient),
		clusterRole(addonsUser, addonsRules()), clusterRoleBinding(addonsUser, addonsUser, addonsUser),
		// A fixed name for the DNS address; the server is not a pod.
		{"/api/v1/namespaces/kube-system/services/kube-dns", object{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "kube-dns", "namespace": "kube-system", "labels": object{"k8s-app": "kube-dns"}},
			"spec": object{"clusterIP": c.DNS(), "ports": []any{
				object{"name": "dns", "port": 53, "protocol": "UDP"}, object{"name": "dns-tcp", "port": 53, "protocol": "TCP"},
			}},
		}},
	}
}

// checkLivingNodes returns an error until living pods can be created.
func (m *Manager) checkLivingNodes(ctx context.Context, client *restclient.Client, c *statedir.Cluster) error {
	if c.Kubelets == 0 {
		return nil
	}
	for n := range c.Kubelets {
		if err := checkNodeReady(ctx, client, kubeletNode(c, n), livingTaint, false); err != nil {
			return err
		}
	}
	// The addons create it last at their start.
	const binding = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/local.pergola.dev"
	if err := client.Get(ctx, binding, nil); err != nil {
		return fmt.Errorf("pods are not sent to living nodes yet: %w", err)
	}
	return m.checkPodRouting(ctx, client)
}

// checkPodRouting returns an error until the API server sends pods to living nodes: it loads a
// policy a little after storing it. The pod is a dry run.
func (m *Manager) checkPodRouting(ctx context.Context, client *restclient.Client) error {
	// This namespace has no other pods and no restrictions.
	const path = "/api/v1/namespaces/kube-node-lease/pods?dryRun=All"
	var pod struct {
		Spec struct {
			NodeSelector map[string]string `json:"nodeSelector"`
		} `json:"spec"`
	}
	containers := []any{object{"name": "etcd", "image": "etcd-development/etcd"}}
	// new images may extend an existing policy
	for i, image := range slices.Sorted(maps.Keys(m.images)) {
		containers = append(containers, object{"name": fmt.Sprintf("image-%d", i), "image": image})
	}
	err := client.Do(ctx, http.MethodPost, path, "application/json", object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "tried"}, "spec": object{"containers": containers},
	}, &pod)
	switch {
	case err != nil && strings.Contains(err.Error(), "webhook"):
		return nil // called after the policy, from a landscape: its error hides the result
	case err != nil:
		return fmt.Errorf("checking whether pods are sent to living nodes: %w", err)
	case pod.Spec.NodeSelector[livingTaint] == "":
		return errors.New("pods are not sent to living nodes yet")
	}
	return nil
}

// livingSpec completes the spec of a part that only clusters with living pods have.
func (m *Manager) livingSpec(c *statedir.Cluster, part string, spec process.Spec) process.Spec {
	spec.Binary = m.executablePaths[binaries.Node]
	if n, kubelet := kubeletNumber(part); kubelet {
		spec.Args = m.kubeletArgs(c, n)
	} else {
		spec.Args = m.addonsArgs(c)
	}
	if info, err := os.Stat(spec.Binary); err == nil {
		spec.Salt += info.ModTime().String() // after a rebuild
	}
	return spec
}

// addonsRules are the permissions that the packages in living document.
func addonsRules() []any {
	rule := func(group, resources, verbs string) object {
		split := func(text string) []any {
			var out []any
			for _, word := range strings.Fields(text) {
				out = append(out, word)
			}
			return out
		}
		return object{"apiGroups": []any{group}, "resources": split(resources), "verbs": split(verbs)}
	}
	return []any{
		rule("", "services", "get list watch create patch delete"),
		rule("", "services/status", "patch"),
		rule("", "configmaps", "get create patch delete"),
		rule("", "secrets", "get"),
		rule("", "pods", "list watch"),
		rule("", "persistentvolumeclaims", "get list watch patch delete"),
		rule("", "persistentvolumes", "get list watch create delete"),
		rule("apps", "statefulsets", "get list watch create patch delete"),
		rule("policy", "poddisruptionbudgets", "get create patch delete"),
		rule("storage.k8s.io", "storageclasses", "get list watch"),
		rule("discovery.k8s.io", "endpointslices", "list watch"),
		rule("druid.gardener.cloud", "etcds etcds/status", "get list watch patch"),
		rule("extensions.gardener.cloud", "dnsrecords clusters", "list watch"),
		rule("operator.gardener.cloud", "gardens", "list watch"),
		rule("networking.istio.io", "gateways virtualservices", "list watch"),
		rule("admissionregistration.k8s.io", "mutatingadmissionpolicies mutatingadmissionpolicybindings", "get create patch"),
	}
}
