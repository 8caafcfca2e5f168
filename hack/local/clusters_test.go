// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/local/cluster"
)

// TestCluster takes one cluster with nodes through its life. The steps build on each other.
func TestCluster(t *testing.T) {
	p := newProgram(t)
	status := p.up("--clusters", "one")
	one := p.api(status, "one")
	t.Run("pods", func(t *testing.T) { one.t = t; testPods(one) })
	t.Run("storage and services", func(t *testing.T) { one.t = t; testStorageAndServices(one) })
	t.Run("kinds that come after kwok", func(t *testing.T) { one.t = t; testCustomResources(one) })
	t.Run("webhooks of fake pods fail at once", func(t *testing.T) { one.t = t; testWebhook(one) })
	status, _ = p.status() // // includes the kwok for the CRDs of testCustomResources
	t.Run("up again leaves everything alone", func(t *testing.T) {
		assert.Equal(t, processIDs(status), processIDs(p.up("--clusters", "one")))
	})
	t.Run("a crashed part is named", func(t *testing.T) { testCrash(t, p, status) })
	t.Run("down leaves no process and keeps the data", func(t *testing.T) { testDown(t, p, one) })
}

func testPods(a api) {
	const deployments = "/apis/apps/v1/namespaces/default/deployments/"
	a.apply(deployments+"web", deployment("web", nil))
	a.apply(deployments+"stuck", deployment("stuck", object{"local.pergola.dev/never-ready": "true"}))
	a.apply("/apis/batch/v1/namespaces/default/jobs/once", object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "once"},
		"spec": object{"template": object{"spec": object{
			"restartPolicy": "Never", "containers": []any{object{"name": "c", "image": "registry.example/once:1"}},
		}}},
	})
	web := a.await(deployments+"web", map[string]string{"status/availableReplicas": "3", "status/conditions[Available]/status": "True"})
	assert.EqualValues(a.t, 3, valueAtPath(web, "status/updatedReplicas"))
	a.await("/apis/batch/v1/namespaces/default/jobs/once", map[string]string{"status/conditions[Complete]/status": "True"})

	stuckPods := "/api/v1/namespaces/default/pods?labelSelector=" + url.QueryEscape("app=stuck")
	list := a.await(stuckPods, map[string]string{"items[0]/status/containerStatuses[0]/state/waiting/reason": "ImagePullBackOff"})
	assert.Contains(a.t, valueAtPath(list, "items[0]/status/containerStatuses[0]/state/waiting/message"), "registry.example/stuck:1")
	assert.Equal(a.t, "Pending", valueAtPath(list, "items[0]/status/phase"))
	assert.NotEqual(a.t, "True", valueAtPath(a.get(deployments+"stuck"), "status/conditions[Available]/status"))
	a.patch(deployments+"stuck", `{"spec":{"template":{"metadata":{"annotations":{"local.pergola.dev/never-ready":null}}}}}`)
	a.await(deployments+"stuck", map[string]string{"status/availableReplicas": "3", "status/replicas": "3"})

	pods := a.get("/api/v1/namespaces/default/pods?labelSelector=" + url.QueryEscape("app=web"))
	assert.Equal(a.t, true, valueAtPath(pods, "items[0]/status/initContainerStatuses[0]/ready"))
	assert.Equal(a.t, "Completed", valueAtPath(pods, "items[0]/status/initContainerStatuses[0]/state/terminated/reason"))
	assert.True(a.t, strings.HasPrefix(fmt.Sprint(valueAtPath(pods, "items[0]/status/podIP")), "239.64."), "pod IP in the fake range")
	require.NoError(a.t, a.client.Delete(context.Background(), deployments+"stuck"))
	require.Eventually(a.t, func() bool {
		return len(a.get(stuckPods)["items"].([]any)) == 0
	}, time.Minute, 100*time.Millisecond, "deleted pods go away")
}

func deployment(name string, annotations object) object {
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
		"spec": object{
			"replicas": 3, "selector": object{"matchLabels": object{"app": name}},
			"template": object{
				"metadata": object{"labels": object{"app": name}, "annotations": annotations},
				"spec": object{
					"initContainers": []any{object{"name": "init", "image": "registry.example/init:1"}},
					"containers":     []any{object{"name": "main", "image": "registry.example/" + name + ":1"}},
				},
			},
		},
	}
}

func testStorageAndServices(a api) {
	const claims = "/api/v1/namespaces/default/persistentvolumeclaims/"
	a.apply(claims+"data", object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": "data"},
		"spec": object{"accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "5Gi"}}},
	})
	claim := a.await(claims+"data", map[string]string{"status/phase": "Bound", "status/capacity/storage": "5Gi"})
	require.NoError(a.t, a.client.Delete(context.Background(), claims+"data"))
	a.awaitGone("/api/v1/persistentvolumes/" + valueAtPath(claim, "spec/volumeName").(string))

	a.apply("/api/v1/namespaces/default/services/lb", object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "lb"},
		"spec": object{"type": "LoadBalancer", "ports": []any{object{"port": 443}}},
	})
	require.Eventually(a.t, func() bool {
		ip, _ := valueAtPath(a.get("/api/v1/namespaces/default/services/lb"), "status/loadBalancer/ingress[0]/ip").(string)
		return strings.HasPrefix(ip, "239.128.")
	}, time.Minute, 100*time.Millisecond)
}

// crd is a CustomResourceDefinition without a schema.
func (a api) crd(group, kind string) {
	a.t.Helper()
	plural := strings.ToLower(kind) + "s"
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + "." + group
	a.apply(path, object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{
			"group": group, "scope": "Namespaced",
			"names": object{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
			"versions": []any{object{
				"name": "v1alpha1", "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
	a.await(path, map[string]string{"status/conditions[Established]/status": "True"})
}

func testCustomResources(a api) {
	const extensions, druid = "extensions.gardener.cloud", "druid.gardener.cloud"
	for _, kind := range []string{"Infrastructure", "OperatingSystemConfig", "Worker"} {
		a.crd(extensions, kind)
	}
	a.crd(druid, "Etcd")
	in := func(group, plural string) string {
		return "/apis/" + group + "/v1alpha1/namespaces/default/" + plural + "/"
	}
	infrastructure, etcd := in(extensions, "infrastructures")+"shoot", in(druid, "etcds")+"main"
	custom := func(group, kind string, spec object) object {
		return object{"apiVersion": group + "/v1alpha1", "kind": kind, "metadata": object{"annotations": object{
			"gardener.cloud/operation": "reconcile", "gardener.cloud/timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		}}, "spec": spec}
	}
	a.apply(infrastructure, custom(extensions, "Infrastructure", object{"type": "local", "region": "local"}))
	a.apply(etcd, custom(druid, "Etcd", object{"replicas": 3}))
	a.apply(in(extensions, "operatingsystemconfigs")+"osc", custom(extensions, "OperatingSystemConfig", object{"type": "local", "purpose": "provision"}))
	a.apply(in(extensions, "workers")+"shoot", custom(extensions, "Worker", object{"pools": []any{object{"name": "a", "minimum": 1, "maximum": 2}}}))

	got := a.await(infrastructure, map[string]string{
		"status/lastOperation/state": "Succeeded", "status/lastOperation/type": "Create", "status/lastOperation/progress": "100",
		"status/observedGeneration": "1", "status/nodesCIDR": "10.250.0.0/16",
		"metadata/finalizers[0]": "extensions.gardener.cloud/infrastructure",
	})
	updated, err := time.Parse(time.RFC3339Nano, valueAtPath(got, "status/lastOperation/lastUpdateTime").(string))
	require.NoError(a.t, err)
	annotated, err := time.Parse(time.RFC3339Nano, got["metadata"].(object)["annotations"].(object)["gardener.cloud/timestamp"].(string))
	require.NoError(a.t, err)
	assert.False(a.t, updated.Before(annotated.Truncate(time.Second)), "%s is before %s", updated, annotated)
	requireNoOperation(a, infrastructure)

	a.await(etcd, map[string]string{
		"status/ready": "true", "status/readyReplicas": "3", "status/observedGeneration": "1",
		"status/conditions[AllMembersUpdated]/status": "True", "status/conditions[BackupReady]/status": "True",
	})
	requireNoOperation(a, etcd)
	osc := a.await(in(extensions, "operatingsystemconfigs")+"osc", map[string]string{"status/lastOperation/state": "Succeeded"})
	secret := a.get("/api/v1/namespaces/default/secrets/" + valueAtPath(osc, "status/cloudConfig/secretRef/name").(string))
	script, err := base64.StdEncoding.DecodeString(valueAtPath(secret, "data/cloud_config").(string))
	require.NoError(a.t, err)
	assert.Contains(a.t, string(script), "#!/bin/bash")
	a.await(in(extensions, "workers")+"shoot", map[string]string{"status/machineDeployments[0]/name": "default-a", "status/machineDeployments[0]/maximum": "2"})
	testFailures(a, infrastructure, etcd)
}

// testFailures makes both objects fail, lets them recover, reconciles a new generation and deletes
// them.
func testFailures(a api, infrastructure, etcd string) {
	const message = `quota "cpus" is used up: 12 of 12`
	a.patch(infrastructure, `{"metadata":{"annotations":{"local.pergola.dev/fail":"quota \"cpus\" is used up: 12 of 12","local.pergola.dev/fail-codes":"ERR_INFRA_QUOTA_EXCEEDED","gardener.cloud/operation":"reconcile"}}}`)
	a.patch(etcd, `{"metadata":{"annotations":{"local.pergola.dev/fail":"no quorum"}}}`)
	a.await(infrastructure, map[string]string{
		"status/lastOperation/state": "Error", "status/lastError/description": message, "status/lastError/codes[0]": "ERR_INFRA_QUOTA_EXCEEDED",
	})
	a.await(etcd, map[string]string{"status/ready": "false", "status/lastErrors[0]/description": "no quorum"})
	a.patch(infrastructure, `{"metadata":{"annotations":{"local.pergola.dev/fail":null}},"spec":{"region":"elsewhere"}}`)
	a.patch(etcd, `{"metadata":{"annotations":{"local.pergola.dev/fail":null}}}`)
	a.await(infrastructure, map[string]string{
		"status/lastOperation/state": "Succeeded", "status/lastOperation/type": "Reconcile", "status/lastError": "<nil>", "status/observedGeneration": "2",
	})
	a.await(etcd, map[string]string{"status/ready": "true", "status/lastErrors": "<nil>"})
	for _, path := range []string{infrastructure, etcd} {
		require.NoError(a.t, a.client.Delete(context.Background(), path))
		a.awaitGone(path)
	}
}

func requireNoOperation(a api, path string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		annotations, _ := valueAtPath(a.get(path), "metadata/annotations").(object)
		_, there := annotations["gardener.cloud/operation"]
		return !there
	}, 30*time.Second, 50*time.Millisecond)
}

// testWebhook registers a webhook whose Service selects the fake pods of testPods.
func testWebhook(a api) {
	a.apply("/api/v1/namespaces/default/services/hook", object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "hook"},
		"spec": object{"selector": object{"app": "web"}, "ports": []any{object{"port": 443, "targetPort": 10250}}},
	})
	require.Eventually(a.t, func() bool {
		slices := a.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=" + url.QueryEscape("kubernetes.io/service-name=hook"))
		return valueAtPath(slices, "items[0]/endpoints[0]/conditions/ready") == true
	}, time.Minute, 100*time.Millisecond)
	const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook"
	hook := func(policy string) object {
		return object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": object{"name": "hook"},
			"webhooks": []any{object{
				"name": "hook.example.com", "failurePolicy": policy, "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": 30,
				"clientConfig": object{"service": object{"namespace": "default", "name": "hook"}},
				"rules":        []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"configmaps"}}},
			}},
		}
	}
	create := func(name string) (time.Duration, error) {
		start := time.Now()
		err := a.client.Apply(context.Background(), "/api/v1/namespaces/default/configmaps/"+name, object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}})
		return time.Since(start), err
	}
	// The API server needs a moment to load the webhook; the policy Fail makes that visible.
	a.apply(path, hook("Fail"))
	var took time.Duration
	var err error
	for n := 0; err == nil && n < 100; n++ {
		took, err = create(fmt.Sprintf("fail-%d", n))
	}
	require.ErrorContains(a.t, err, "hook.example.com")
	assert.Less(a.t, took, time.Second, "the call is refused, not timed out")
	a.apply(path, hook("Ignore"))
	require.Eventually(a.t, func() bool {
		took, err = create("ignored")
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	assert.Less(a.t, took, time.Second, "an ignored webhook does not slow requests down")
	require.NoError(a.t, a.client.Delete(context.Background(), path))
}

func testCrash(t *testing.T, p program, before cluster.Status) {
	scheduler := processIDs(before)["one/kube-scheduler"]
	require.NoError(t, syscall.Kill(scheduler, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		_, code := p.status()
		return code == 1
	}, 10*time.Second, 100*time.Millisecond, "status ends with 1")
	text, _, _ := p.run("status")
	assert.Regexp(t, `kube-scheduler +crashed`, text)
	status, _ := p.status()
	for _, part := range status.Clusters[0].Parts {
		assert.Equal(t, part.Name == "kube-scheduler", part.State == cluster.Crashed, part.Name)
		assert.Equal(t, part.Name == "kube-scheduler", len(part.Tail) > 0, part.Name)
	}
	_, messages, code := p.run("up", "--clusters", "one")
	require.Zero(t, code, messages)
	assert.Contains(t, messages, "one/kube-scheduler has ended unexpectedly")
	after, code := p.status()
	require.Zero(t, code)
	was, is := processIDs(before), processIDs(after)
	assert.NotEqual(t, scheduler, is["one/kube-scheduler"])
	delete(was, "one/kube-scheduler")
	delete(is, "one/kube-scheduler")
	assert.Equal(t, was, is, "everything else kept running")
}

func testDown(t *testing.T, p program, one api) {
	status, code := p.status()
	require.Zero(t, code)
	_, messages, code := p.run("down")
	require.Zero(t, code, messages)
	assert.Equal(t, fmt.Sprintf("stopped %d processes (clusters: %d) and kept the data in %s\n", len(processIDs(status)), len(status.Clusters), p.dir), messages)
	for part, pid := range processIDs(status) {
		requireProcessEnded(t, part, pid)
	}
	_, code = p.status()
	assert.Equal(t, 1, code)
	p.up("--clusters", "one")
	one.t = t
	assert.EqualValues(t, 3, valueAtPath(one.get("/apis/apps/v1/namespaces/default/deployments/web"), "spec/replicas"))
}

// TestParallelClusters runs light clusters in two folders, one of them with two clusters.
func TestParallelClusters(t *testing.T) {
	first, second := newProgram(t), newProgram(t)
	atTheSameTime := first.command("up", "--fast", "--clusters", "a,b")
	require.NoError(t, atTheSameTime.Start())
	two := second.up("--fast", "--clusters", "a")
	require.NoError(t, atTheSameTime.Wait())
	one := first.up("--fast", "--clusters", "a,b")
	require.Len(t, one.Clusters, 2)
	require.Len(t, one.Clusters[0].Parts, 1)
	const path = "/api/v1/namespaces/default/configmaps/mine"
	first.api(one, "a").apply(path, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "mine"}})
	assert.Error(t, first.api(one, "b").client.Get(context.Background(), path, nil), "clusters of one etcd are apart")
	assert.Error(t, second.api(two, "a").client.Get(context.Background(), path, nil))
	assert.Error(t, second.api(one, "a").client.Get(context.Background(), path, nil), "the credentials of one cluster are no good in another")
	require.FileExists(t, filepath.Join(first.dir, "kubeconfig"))
	merged, err := os.ReadFile(filepath.Join(first.dir, "kubeconfig"))
	require.NoError(t, err)
	assert.Contains(t, string(merged), "name: pergola-a")
	assert.Contains(t, string(merged), "name: pergola-b")
}

// TestInterruptedUp interrupts up halfway; down then cleans up the rest.
func TestInterruptedUp(t *testing.T) {
	p := newProgram(t)
	command := p.command("up", "--clusters", "one")
	require.NoError(t, command.Start())
	require.Eventually(t, func() bool {
		records, _ := filepath.Glob(filepath.Join(p.dir, "run", "one", "*.pid"))
		return len(records) > 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.Error(t, command.Wait())
	assert.Equal(t, 2, command.ProcessState.ExitCode())
	status, _ := p.status()
	_, messages, code := p.run("down")
	require.Zero(t, code, messages)
	started := 0
	for part, pid := range processIDs(status) {
		if pid != 0 {
			started++
			requireProcessEnded(t, part, pid)
		}
	}
	assert.Positive(t, started, "something was running after the interrupt")
}

// TestSecondUpWaits runs up twice at the same time: the second waits for the first and has nothing
// to do.
func TestSecondUpWaits(t *testing.T) {
	p := newProgram(t)
	first := p.command("up", "--fast", "--clusters", "one")
	require.NoError(t, first.Start())
	require.Eventually(t, func() bool {
		records, _ := filepath.Glob(filepath.Join(p.dir, "run", "shared", "*.pid"))
		return len(records) > 0
	}, time.Minute, 5*time.Millisecond)
	_, messages, code := p.run("up", "--fast", "--clusters", "one")
	require.Zero(t, code, messages)
	assert.Contains(t, messages, fmt.Sprintf("waiting for process %d", first.Process.Pid))
	require.NoError(t, first.Wait())
}

// TestUsageErrors checks that usage errors are reported before anything starts.
func TestUsageErrors(t *testing.T) {
	p := newProgram(t)
	for _, args := range [][]string{
		{"up", "--clusters", "Big"}, {"up", "--clusters", "a,a"}, {"up", "--clusters", "shared"}, {"up", "--parts", "kubelet"},
		{"status", "-o", "xml"}, {"kubeconfig", "nobody"}, {"up", "extra"},
		{"logs", "one", "a/b", "--tail", "-5"}, {"logs", "one", "a"}, {"forward", "one", "a/b:80", "--port", "70000"}, {"forward", "one", "a/b:http"}, {"run", "--", "/none"},
	} {
		_, messages, code := p.run(args...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, messages, "error: ", args)
	}
	status, code := p.status()
	assert.Equal(t, 1, code)
	assert.Empty(t, status.Clusters)
}
