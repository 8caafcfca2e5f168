// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
)

// maxParallel is the number of concurrent patches, of the engine and of the floor.
const maxParallel = 16

// resources returns the resources of the objects by kind.
func resources() map[string]schema.GroupVersionResource {
	core := func(name string) schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource(name) }
	return map[string]schema.GroupVersionResource{
		"ConfigMap": core("configmaps"), "Secret": core("secrets"), "ServiceAccount": core("serviceaccounts"),
		"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	}
}

// objectSet returns objects of a mix of kinds as in a landscape.
func (a arguments) objectSet() (apply.Set, error) {
	set := apply.Set{Name: a.namespace + "/bench", FieldManager: "pergola", Force: true}
	for i := range a.objects {
		text := `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: NS}, data: {key: NAME, text: "a line of configuration\nand another"}}`
		switch i % 5 {
		case 0:
			text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: NS, labels: {app: NAME}}, spec: {replicas: 1,
				selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {serviceAccountName: NAME, containers: [{
				name: app, image: "registry.k8s.io/pause:3.10", args: [--verbose], ports: [{containerPort: 80}], resources: {requests: {cpu: 50m, memory: 64Mi}}}]}}}}`
		case 1:
			text = `{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: NS}, type: Opaque, stringData: {key: NAME}}`
		case 2:
			text = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME, namespace: NS}, automountServiceAccountToken: false}`
		}
		text = string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(text), []byte("NAME"), fmt.Appendf(nil, "o%05d", i)), []byte("NS"), []byte(a.namespace)))
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return set, err
		}
		// As everywhere else: whole numbers are int64.
		raw, err := o.MarshalJSON()
		if err != nil {
			return set, err
		}
		if err := o.UnmarshalJSON(raw); err != nil {
			return set, err
		}
		set.Objects = append(set.Objects, o)
	}
	return set, nil
}

func (a arguments) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// applyOnce applies with a new engine, as a process does that has just started.
func applyOnce(ctx context.Context, a arguments) (sample, error) { return a.runEngine(ctx, false) }

// applyAgain measures the second of two applies by one engine.
func applyAgain(ctx context.Context, a arguments) (sample, error) { return a.runEngine(ctx, true) }

func (a arguments) runEngine(ctx context.Context, again bool) (sample, error) {
	config, err := a.config()
	if err != nil {
		return sample{}, err
	}
	set, err := a.objectSet()
	if err != nil {
		return sample{}, err
	}
	cluster, err := conventions.NewCluster("bench", config, apply.ClusterOptions{})
	if err != nil {
		return sample{}, err
	}
	defer cluster.Close()
	engine := conventions.NewEngine(apply.Options{Parallel: maxParallel})
	inventory := apply.NewConfigMapInventory(cluster, a.namespace, "pergola-inventory.bench", nil)
	do := func() error {
		_, err := engine.Apply(ctx, cluster, set, inventory, apply.ApplyOptions{})
		return err
	}
	if again {
		if err := do(); err != nil {
			return sample{}, err
		}
	}
	before := cluster.Requests()
	result, err := measureTime(do)
	result.Requests = cluster.Requests().Sub(before)
	return result, err
}

func floorOnce(ctx context.Context, a arguments) (sample, error) { return a.runFloor(ctx, false) }

func floorAgain(ctx context.Context, a arguments) (sample, error) { return a.runFloor(ctx, true) }

// runFloor sends the patches alone: no discovery, no inventory, no order, no cache.
func (a arguments) runFloor(ctx context.Context, again bool) (sample, error) {
	config, err := a.config()
	if err != nil {
		return sample{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return sample{}, err
	}
	set, err := a.objectSet()
	if err != nil {
		return sample{}, err
	}
	do := func() error { return patchAll(ctx, client, set) }
	if again {
		if err := do(); err != nil {
			return sample{}, err
		}
	}
	result, err := measureTime(do)
	result.Requests = map[string]int{"patch-apply": len(set.Objects)}
	return result, err
}

func patchAll(ctx context.Context, client dynamic.Interface, set apply.Set) error {
	var group sync.WaitGroup
	var mutex sync.Mutex
	var failed error
	slots := make(chan struct{}, maxParallel)
	known := resources()
	for _, o := range set.Objects {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			_, err := client.Resource(known[o.GetKind()]).Namespace(o.GetNamespace()).
				Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "floor", Force: true})
			if err != nil {
				mutex.Lock()
				failed = err
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return failed
}

// deleteObjects creates the namespace and deletes the objects of an earlier run.
func deleteObjects(ctx context.Context, a arguments) (sample, error) {
	config, err := a.config()
	if err != nil {
		return sample{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return sample{}, err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": a.namespace},
	}}
	_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return sample{}, err
	}
	now, background := int64(0), metav1.DeletePropagationBackground
	for _, resource := range resources() {
		in := client.Resource(resource).Namespace(a.namespace)
		if err := in.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}, metav1.ListOptions{}); err != nil {
			return sample{}, err
		}
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			left, err := in.List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil && len(left.Items) == 0, err
		})
		if err != nil {
			return sample{}, fmt.Errorf("waiting for the deletion of %s: %w", resource.Resource, err)
		}
	}
	return sample{}, nil
}

// writeManifest writes the objects for kubectl.
func writeManifest(_ context.Context, a arguments) (sample, error) {
	set, err := a.objectSet()
	if err != nil {
		return sample{}, err
	}
	var out bytes.Buffer
	for _, o := range set.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return sample{}, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return sample{}, os.WriteFile(a.file, out.Bytes(), 0o644)
}
