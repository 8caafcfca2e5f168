// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// maxParallel is the number of concurrent requests, of the benchmark and the floor: as many as
// Pergola's engine sends.
const maxParallel = 16

// server is a client of the API server. Its own requests are counted, to be subtracted.
type server struct {
	config      *rest.Config
	api         dynamic.Interface
	http        *http.Client
	ownRequests *requestCounter
	apiserver   int
	etcd        int
	kubeconfig  string
}

func newServer(a arguments) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		return nil, err
	}
	s := &server{config: config, ownRequests: newCounter(), apiserver: a.apiserver, etcd: a.etcd, kubeconfig: a.kubeconfig}
	config.QPS, config.UserAgent = -1, "pergola-bench"
	config.Wrap(s.ownRequests.wrap)
	if s.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	s.api, err = dynamic.NewForConfigAndClient(config, s.http)
	return s, err
}

func (s *server) resource(kind, namespace string) dynamic.ResourceInterface {
	resource := s.api.Resource(resourcesByKind()[kind])
	if namespace == "" {
		return resource
	}
	return resource.Namespace(namespace)
}

func (s *server) create(ctx context.Context, o *unstructured.Unstructured) error {
	_, err := s.resource(o.GetKind(), o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: "bench"})
	if err != nil {
		return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// patch merges fields into an object, with a different field manager than the contenders.
func (s *server) patch(ctx context.Context, kind, name string, fields map[string]any, subresources ...string) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = s.resource(kind, bundleNamespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "bench"}, subresources...)
	if err != nil {
		return fmt.Errorf("patch %s %s: %w", kind, name, err)
	}
	return nil
}

// createDefinitions creates the definitions in files and folders, and waits until they are served.
func (s *server) createDefinitions(ctx context.Context, places string) error {
	for place := range strings.SplitSeq(places, ",") {
		err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(raw, &o.Object); err != nil || o.GetKind() != "CustomResourceDefinition" {
				return err
			}
			return s.create(ctx, o)
		})
		if err != nil {
			return fmt.Errorf("definitions of %s: %w", place, err)
		}
	}
	return s.waitUntilEstablished(ctx)
}

// waitUntilEstablished waits until all definitions are served.
func (s *server) waitUntilEstablished(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := s.resource("CustomResourceDefinition", "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, o := range list.Items {
			if !hasCondition(&o, "Established", "True") {
				return false, nil
			}
		}
		return true, nil
	})
}

func (s *server) createNamespace(ctx context.Context, name string) error {
	o, err := parseObject("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
	if err != nil {
		return err
	}
	// No controllers of namespaces run; the objects do not need them.
	if err := s.create(ctx, o); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// forEachParallel calls do for the numbers below n, some at a time; it returns the first error.
func forEachParallel(n int, do func(i int) error) error {
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	slots := make(chan struct{}, maxParallel)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	group.Wait()
	return failed
}

// conditions returns the status of each condition of an object, by type.
func conditions(o *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			kind, _ := c["type"].(string)
			out[kind], _ = c["status"].(string)
		}
	}
	return out
}

func hasCondition(o *unstructured.Unstructured, kind, status string) bool {
	return conditions(o)[kind] == status
}

// isObserved reports whether the status is about the current spec.
func isObserved(o *unstructured.Unstructured) bool {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return n == o.GetGeneration()
}

// verify reads all objects of all bundles, to check that they were applied.
func (s *server) verify(ctx context.Context, bundles int) error {
	kinds := map[string]bool{}
	one, err := bundleObjects(0, initialValue)
	if err != nil {
		return err
	}
	for _, o := range one {
		kinds[o.GetKind()] = true
	}
	for kind := range maps.Keys(kinds) {
		list, err := s.resource(kind, bundleNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		there := map[string]*unstructured.Unstructured{}
		for _, o := range list.Items {
			there[o.GetName()] = &o
		}
		for i := range bundles {
			o := there[bundleName(i)]
			if o == nil {
				return fmt.Errorf("%s %s does not exist", kind, bundleName(i))
			}
			if kind == "ConfigMap" && valueOf(o) != initialValue {
				return fmt.Errorf("ConfigMap %s has the value %q", bundleName(i), valueOf(o))
			}
		}
	}
	return nil
}

func valueOf(configMap *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(configMap.Object, "data", "value")
	return value
}
