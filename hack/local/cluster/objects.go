// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"runtime"

	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

const (
	kwokUser   = "pergola-local:kwok"
	stagesUser = "pergola-local:stages" // reads the served kinds, as every user may
)

type object = map[string]any

// pathObject is an object and its path in the API.
type pathObject struct {
	path   string
	object object
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

func clusterRoleBinding(name, role, user string) pathObject {
	const group = "rbac.authorization.k8s.io"
	return pathObject{rbacPath + "clusterrolebindings/" + name, object{
		"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name},
		"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": role},
		"subjects": []any{object{"apiGroup": group, "kind": "User", "name": user}},
	}}
}

// clusterRole returns a ClusterRole with the rules.
func clusterRole(name string, rules []any) pathObject {
	return pathObject{rbacPath + "clusterroles/" + name, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name}, "rules": rules,
	}}
}

// foundationObjects returns the objects that must exist before the parts of a cluster start.
func foundationObjects(c *statedir.Cluster) []pathObject {
	var all []pathObject
	if c.HasPart(PartKwok) {
		// kwok plays controllers of every API group, known or not.
		all = append(all, clusterRoleBinding("pergola-local:kwok", "cluster-admin", kwokUser), storageClass())
	}
	for n := range c.Nodes {
		all = append(all, fakeNodeObject(c, n))
	}
	return append(all, livingFoundation(c)...)
}

func storageClass() pathObject {
	return pathObject{"/apis/storage.k8s.io/v1/storageclasses/default", object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":    object{"name": "default", "annotations": object{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": "local.pergola.dev/volumes", "volumeBindingMode": "Immediate", "reclaimPolicy": "Delete",
	}}
}

func nodeName(c *statedir.Cluster, n int) string { return fmt.Sprintf("%s-%d", c.Name, n) }

// fakeNodeObject returns the n-th fake Node, in zone n.
func fakeNodeObject(c *statedir.Cluster, n int) pathObject {
	name := nodeName(c, n)
	return pathObject{"/api/v1/nodes/" + name, object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{
			"name":        name,
			"labels":      nodeLabels(name, n),
			"annotations": object{fakeNodeAnnotation: "fake", "local.pergola.dev/node-ip": c.NodeIP(n)},
		},
	}}
}

// fakeNodeAnnotation is the annotation of nodes that kwok plays.
const fakeNodeAnnotation = "kwok.x-k8s.io/node"

// nodeLabels returns the labels of a node in zone n.
func nodeLabels(name string, n int) map[string]string {
	return map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH,
		"topology.kubernetes.io/region": "local", "topology.kubernetes.io/zone": fmt.Sprint(n),
		"node.kubernetes.io/instance-type": "local", "node-role.kubernetes.io/worker": "",
	}
}

// applyFoundation applies the foundation.
func applyFoundation(ctx context.Context, client *restclient.Client, c *statedir.Cluster) error {
	for _, p := range foundationObjects(c) {
		if err := client.Apply(ctx, p.path, p.object); err != nil {
			return fmt.Errorf("setting up: %w", err)
		}
	}
	return nil
}

// dropNodeLeases lets a new kwok take over the nodes at once. Each kwok has its own identity and
// would wait until the Leases of the previous one expire.
func dropNodeLeases(ctx context.Context, client *restclient.Client) error {
	const path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := client.Get(ctx, path, &list); err != nil {
		return fmt.Errorf("listing node leases: %w", err)
	}
	for _, lease := range list.Items {
		if err := client.Delete(ctx, path+"/"+lease.Metadata.Name); err != nil {
			return fmt.Errorf("removing node lease: %w", err)
		}
	}
	return nil
}
