// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/bench/process"
)

// pergola is `pergola resource-manager`.
type pergola struct{ base }

func (p *pergola) prepare(ctx context.Context) error {
	for _, definition := range crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group) {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return err
		}
		if err := p.server.create(ctx, &unstructured.Unstructured{Object: raw}); err != nil {
			return err
		}
	}
	if err := p.server.waitUntilEstablished(ctx); err != nil {
		return err
	}
	if err := p.server.createNamespace(ctx, bundleNamespace); err != nil {
		return err
	}
	return forEachParallel(p.bundles, func(i int) error {
		secret, err := parseObject(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: managedresource-%s, namespace: %s}}", bundleName(i), bundleNamespace))
		if err != nil {
			return err
		}
		secret.Object["stringData"] = map[string]any{"bundle.yaml": bundleManifest(i, initialValue)}
		if err := p.server.create(ctx, secret); err != nil {
			return err
		}
		mr, err := parseObject(fmt.Sprintf("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: %s, namespace: %s}, "+
			"spec: {secretRefs: [{name: managedresource-%s}]}}", bundleName(i), bundleNamespace, bundleName(i)))
		if err != nil {
			return err
		}
		return p.server.create(ctx, mr)
	})
}

func (p *pergola) start(ctx context.Context) (done time.Time, err error) {
	command := []string{p.controller, "resource-manager", "--leader-elect=false", "--sync-period=1h", "--health-port=-1",
		"--metrics-port=-1", fmt.Sprintf("--concurrent-syncs=%d", p.workers), "--kubeconfig=" + p.server.kubeconfig}
	if p.profile != "" {
		self, err := os.Executable()
		if err != nil {
			return time.Time{}, err
		}
		profile := filepath.Join(p.profile, time.Now().Format("150405"))
		command = []string{self, "manager", "-kubeconfig", p.server.kubeconfig, "-workers", fmt.Sprint(p.workers), "-profile", profile}
	}
	if p.process, err = process.Start(p.log, nil, command...); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := p.process.ContextUntilExit(ctx)
	defer cancel()
	list, err := p.server.follow(ctx, "ManagedResource")
	if err != nil {
		return done, err
	}
	defer list.stop()
	applied, err := list.waitUntil(ctx, p.names(), isApplied)
	if err != nil || !latest(applied).IsZero() {
		return latest(applied), err
	}
	return p.process.WaitUntilIdle(ctx) // nothing to do, which the cluster does not show
}

// isApplied reports whether a ManagedResource is applied, healthy and not progressing.
func isApplied(o *unstructured.Unstructured) bool {
	c := conditions(o)
	return isObserved(o) && c["ResourcesApplied"] == "True" && c["ResourcesHealthy"] == "True" && c["ResourcesProgressing"] == "False"
}

// reconcileAll requests all reconciliations by upstream's annotation.
func (p *pergola) reconcileAll(ctx context.Context) (time.Time, error) {
	if err := forEachParallel(p.bundles, func(i int) error {
		return p.server.patch(ctx, "ManagedResource", bundleName(i), annotation("gardener.cloud/operation", "reconcile"))
	}); err != nil {
		return time.Time{}, err
	}
	return p.process.WaitUntilIdle(ctx)
}

func annotation(name, value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}}
}

func (p *pergola) change(ctx context.Context, i int, value string) error {
	return p.server.patch(ctx, "Secret", "managedresource-"+bundleName(i), map[string]any{"stringData": map[string]any{"bundle.yaml": bundleManifest(i, value)}})
}

// repair does nothing: Pergola detects drift itself.
func (p *pergola) repair(context.Context, int, string) error { return nil }
