// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/apply"
)

// ExampleEngine_Apply applies one ConfigMap, and records it in an inventory. If the next set lacks
// the ConfigMap, the engine deletes it.
func ExampleEngine_Apply() {
	config, err := clientcmd.BuildConfigFromFlags("", "kubeconfig")
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := apply.NewCluster("runtime", config, apply.ClusterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	set := apply.Set{Name: "garden/settings", FieldManager: "example", Objects: []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "garden", "name": "settings"},
		"data":     map[string]any{"mode": "fast"},
	}}}}
	inventory := apply.NewConfigMapInventory(cluster, "garden", "inventory-settings", nil)
	result, err := apply.NewEngine(apply.Options{}).Apply(context.Background(), cluster, set, inventory, apply.ApplyOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(result.Objects), "objects")
}
