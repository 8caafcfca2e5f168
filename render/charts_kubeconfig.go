// SPDX-License-Identifier: Apache-2.0

package render

// gardenKubeconfig is the access to the virtual garden that is injected into workloads of a chart,
// as upstream does.
type gardenKubeconfig struct {
	// Generic is the Secret with the kubeconfig; Access is the Secret with the token.
	Generic string `json:"generic"`
	Access  string `json:"access"`
}

const (
	kubeconfigVolume = "garden-kubeconfig"
	kubeconfigFolder = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	kubeconfigEnv    = "GARDEN_KUBECONFIG"
)

// inject adds the kubeconfig to all containers of workloads, except in workloads that have one
// already.
func (k gardenKubeconfig) inject(objects []Object) {
	for _, o := range objects {
		if group := o.GroupVersionKind().Group; group != "apps" && group != "batch" {
			continue
		}
		injected := false
		for _, template := range podTemplates(o.Unstructured) {
			spec, ok := template["spec"].(map[string]any)
			if ok && !hasKubeconfig(spec) {
				k.injectInto(spec)
				injected = true
			}
		}
		if injected {
			o.SetAnnotations(mergeMaps(o.GetAnnotations(), map[string]string{MarkReferences: "true"}))
		}
	}
}

func containersOf(spec map[string]any) []map[string]any {
	return append(mapsIn(spec["initContainers"]), mapsIn(spec["containers"])...)
}

func hasKubeconfig(spec map[string]any) bool {
	for _, c := range containersOf(spec) {
		for _, env := range mapsIn(c["env"]) {
			if env["name"] == kubeconfigEnv {
				return true
			}
		}
	}
	return false
}

func (k gardenKubeconfig) injectInto(spec map[string]any) {
	from := func(secret, key string) map[string]any {
		return map[string]any{"secret": map[string]any{"name": secret, "items": []any{map[string]any{"key": key, "path": key}}, "optional": false}}
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": kubeconfigVolume, "projected": map[string]any{
		"defaultMode": int64(0o644), "sources": []any{from(k.Generic, "kubeconfig"), from(k.Access, "token")},
	}})
	for _, c := range containersOf(spec) {
		mounts, _ := c["volumeMounts"].([]any)
		c["volumeMounts"] = append(mounts, map[string]any{"name": kubeconfigVolume, "mountPath": kubeconfigFolder, "readOnly": true})
		env, _ := c["env"].([]any)
		c["env"] = append(env, map[string]any{"name": kubeconfigEnv, "value": kubeconfigFolder + "/kubeconfig"})
	}
}
