// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/bench/process"
)

// flux is kustomize-controller. A GitRepository without source-controller points to an archive of
// one bundle. Every Kustomization substitutes its own name and value, so that no other bundle is
// unpacked or built.
type flux struct{ base }

// runtimeNamespace is the namespace of the controller.
const runtimeNamespace = "flux-system"

func (f *flux) prepare(ctx context.Context) error {
	if err := f.server.createDefinitions(ctx, f.definitions); err != nil {
		return err
	}
	for _, name := range []string{bundleNamespace, runtimeNamespace} {
		if err := f.server.createNamespace(ctx, name); err != nil {
			return err
		}
	}
	if err := f.serveSource(ctx); err != nil {
		return err
	}
	return forEachParallel(f.bundles, func(i int) error {
		o, err := parseObject(fmt.Sprintf("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %s, namespace: %s}, spec: {interval: 1h, "+
			"path: ./, prune: true, wait: %t, timeout: 1m, sourceRef: {kind: GitRepository, name: bundle}, postBuild: {substitute: {NAME: %s, VALUE: %s}}}}",
			bundleName(i), bundleNamespace, f.wait, bundleName(i), initialValue))
		if err != nil {
			return err
		}
		return f.server.create(ctx, o)
	})
}

// serveSource serves the archive and declares its URL, as source-controller would.
func (f *flux) serveSource(ctx context.Context) error {
	archive, err := packArchive("bundle.yaml", bundleTemplate)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = w.Write(archive)
	})}
	go func() { _ = web.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = web.Close() })
	o, err := parseObject("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: bundle, namespace: " + bundleNamespace + "}, spec: {interval: 1h, url: https://git.example.com/bundle}}")
	if err != nil {
		return err
	}
	if err := f.server.create(ctx, o); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	return f.server.patch(ctx, "GitRepository", "bundle", map[string]any{"status": map[string]any{
		"observedGeneration": 1,
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": now}},
		"artifact": map[string]any{
			"path": "bundle.tar.gz", "url": "http://" + l.Addr().String() + "/bundle.tar.gz", "revision": "main@sha1:0000000000000000000000000000000000000001",
			"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), "lastUpdateTime": now, "size": len(archive)},
	}}, "status")
}

// packArchive returns an archive of one file.
func packArchive(name, text string) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := archive.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (f *flux) start(ctx context.Context) (time.Time, error) {
	list, err := f.server.follow(ctx, "Kustomization")
	if err != nil {
		return time.Time{}, err
	}
	defer list.stop()
	before := list.snapshot()
	f.process, err = process.Start(f.log, []string{"KUBECONFIG=" + f.server.kubeconfig, "RUNTIME_NAMESPACE=" + runtimeNamespace},
		f.controller, fmt.Sprintf("--concurrent=%d", f.workers), "--kube-api-qps=1000", "--kube-api-burst=2000",
		"--metrics-addr=0", "--health-addr=0", "--log-level=info", "--log-encoding=json")
	if err != nil {
		return time.Time{}, err
	}
	alive, cancel := f.process.ContextUntilExit(ctx)
	defer cancel()
	// The controller writes a status when it starts with a Kustomization, and when it ends.
	done, err := list.waitUntil(alive, f.names(), func(o *unstructured.Unstructured) bool {
		return o.GetResourceVersion() != before[o.GetName()].GetResourceVersion() && isReady(o)
	})
	return latest(done), err
}

func isReady(o *unstructured.Unstructured) bool {
	c := conditions(o)
	return isObserved(o) && c["Ready"] == "True" && c["Reconciling"] != "True"
}

func (f *flux) reconcileAll(ctx context.Context) (time.Time, error) {
	list, err := f.server.follow(ctx, "Kustomization")
	if err != nil {
		return time.Time{}, err
	}
	defer list.stop()
	if err := forEachParallel(f.bundles, func(i int) error { return f.requestReconcile(ctx, i, "again") }); err != nil {
		return time.Time{}, err
	}
	done, err := list.waitUntil(ctx, f.names(), func(o *unstructured.Unstructured) bool {
		handled, _, _ := unstructured.NestedString(o.Object, "status", "lastHandledReconcileAt")
		return handled == "again" && isReady(o)
	})
	return latest(done), err
}

// requestReconcile requests a reconciliation of one Kustomization, by Flux's annotation.
func (f *flux) requestReconcile(ctx context.Context, i int, mark string) error {
	return f.server.patch(ctx, "Kustomization", bundleName(i), annotation("reconcile.fluxcd.io/requestedAt", mark))
}

// change declares another value in the Kustomization. A commit would make Flux reconcile all
// Kustomizations of the source.
func (f *flux) change(ctx context.Context, i int, value string) error {
	return f.server.patch(ctx, "Kustomization", bundleName(i), map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": map[string]any{"VALUE": value}}}})
}

// repair requests a reconciliation: Flux checks drift only at its interval.
func (f *flux) repair(ctx context.Context, i int, _ string) error {
	return f.requestReconcile(ctx, i, "drift")
}
