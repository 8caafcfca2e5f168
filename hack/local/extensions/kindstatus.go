// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// kindStatus returns the status fields that an extension of this kind reports to its consumers.
func (p *Player) kindStatus(ctx context.Context, live *unstructured.Unstructured) (map[string]any, error) {
	switch live.GetKind() {
	case "Infrastructure":
		nodes := cmp.Or(nestedString(live, "spec", "providerConfig", "networks", "workers"), "10.250.0.0/16")
		return map[string]any{"nodesCIDR": nodes, "networking": map[string]any{"nodes": []any{nodes}}}, nil
	case "Worker":
		return map[string]any{"machineDeploymentsLastUpdateTime": p.now(), "machineDeployments": machineDeployments(live)}, nil
	case "Bastion":
		return map[string]any{"ingress": map[string]any{"ip": "239.129.0.1"}}, nil
	case "DNSRecord":
		return map[string]any{"zone": cmp.Or(nestedString(live, "spec", "zone"), "local-zone")}, nil
	case "OperatingSystemConfig":
		return p.ensureCloudConfig(ctx, live)
	}
	return map[string]any{}, nil
}

func machineDeployments(live *unstructured.Unstructured) []any {
	out := []any{}
	pools, _, _ := unstructured.NestedSlice(live.Object, "spec", "pools")
	for _, pool := range pools {
		fields, _ := pool.(map[string]any)
		one := map[string]any{"name": fmt.Sprintf("%s-%v", live.GetNamespace(), fields["name"]), "minimum": 0, "maximum": 0}
		for _, size := range []string{"minimum", "maximum"} {
			if n, has := fields[size]; has {
				one[size] = n
			}
		}
		out = append(out, one)
	}
	return out
}

// ensureCloudConfig creates the Secret, named in the status, with the script that bootstraps a
// node.
func (p *Player) ensureCloudConfig(ctx context.Context, live *unstructured.Unstructured) (map[string]any, error) {
	name := "osc-result-" + live.GetName()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": name, "namespace": live.GetNamespace(), "ownerReferences": []any{map[string]any{
			"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "name": live.GetName(), "uid": live.GetUID(), "controller": true, "blockOwnerDeletion": true,
		}}},
		"data": map[string]any{"cloud_config": base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "#!/bin/bash\n# %s, played by the local cluster\n", live.GetName()))},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding Secret %s: %w", name, err)
	}
	_, err = p.Client.Resource(secretsResource).Namespace(live.GetNamespace()).Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)})
	if err != nil {
		return nil, fmt.Errorf("writing Secret %s/%s: %w", live.GetNamespace(), name, err)
	}
	return map[string]any{"cloudConfig": map[string]any{"secretRef": map[string]any{"name": name, "namespace": live.GetNamespace()}}}, nil
}
