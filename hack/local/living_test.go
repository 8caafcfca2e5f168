// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/local/hold"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

const probeImage = "registry.example.org/test/probe"

func TestMain(m *testing.M) {
	hold.InitHolder() // hold.CheckSupport starts this program
	os.Exit(m.Run())
}

// buildProbe compiles the program that tests run in pods.
func buildProbe(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "probe")
	command := exec.Command("go", "build", "-o", file, "./testdata/probe")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// livingCluster is a cluster that runs its pods.
type livingCluster struct {
	program
	api
	// proxyClient connects to addresses inside.
	proxyClient *http.Client
}

func newLiving(t *testing.T) *livingCluster {
	t.Helper()
	if err := hold.CheckSupport(); err != nil {
		t.Skip("pods cannot run here: ", err)
	}
	p := newProgram(t)
	p.dir = newShortFolder(t)
	l := &livingCluster{program: p, api: p.api(p.up("--clusters", "one", "--pods", "run", "--image", probeImage+"="+buildProbe(t)), "one")}
	state, err := statedir.Dir(p.dir).Load()
	require.NoError(t, err)
	way := fmt.Sprintf("127.0.0.1:%d", state.ProxyPort)
	l.proxyClient = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return dialThroughProxy(ctx, way, address)
	}}}
	return l
}

// dialThroughProxy connects through a proxy with CONNECT, as HTTPS clients do.
func dialThroughProxy(ctx context.Context, proxy, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", proxy)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(connection, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy says %s", response.Status)
	}
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	return connection, nil
}

// newShortFolder returns a folder whose path is short enough for a kubelet's socket.
func newShortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "living")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	return filepath.Join(folder, "s")
}

const podsPath = "/api/v1/namespaces/default/pods/"

// requestPod sends a request to a pod that has an address.
func (l *livingCluster) requestPod(t *testing.T, pod, path, of string) (string, error) {
	t.Helper()
	address, _ := valueAtPath(l.get(podsPath+pod), "status/podIP").(string)
	require.NotEmpty(t, address)
	response, err := l.proxyClient.Get("http://" + address + path + "?of=" + url.QueryEscape(of))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s", strings.TrimSpace(string(text)))
	}
	return string(text), nil
}

// requireAnswer repeats a request until the answer is want.
func (l *livingCluster) requireAnswer(t *testing.T, pod, path, of, want string) {
	t.Helper()
	var last string
	var err error
	require.Eventually(t, func() bool {
		last, err = l.requestPod(t, pod, path, of)
		return err == nil && last == want
	}, time.Minute, 100*time.Millisecond, "%s %s of %s: want %q", pod, path, of, want)
}

// createProbePod creates a pod of the probe.
func (l *livingCluster) createProbePod(t *testing.T, name string, change func(spec, container object)) {
	t.Helper()
	container := object{
		"name": "probe", "image": probeImage + ":v1",
		"readinessProbe": object{"httpGet": object{"path": "/healthz", "port": 80}, "periodSeconds": 1},
	}
	spec := object{"containers": []any{container}, "terminationGracePeriodSeconds": 1}
	if change != nil {
		change(spec, container)
	}
	l.api.t = t
	l.api.apply(podsPath+name, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": object{"app": name}}, "spec": spec})
}

func (l *livingCluster) awaitPodReady(t *testing.T, name string) {
	t.Helper()
	l.api.t = t
	l.await(podsPath+name, map[string]string{"status/conditions[Ready]/status": "True"})
}

// TestLivingCluster checks the environment of pods that run, and failures of them, on one cluster.
func TestLivingCluster(t *testing.T) {
	l := newLiving(t)
	t.Run("what a pod sees", func(t *testing.T) { testPodEnvironment(t, l) })
	t.Run("pods and nodes of both sorts", func(t *testing.T) { testLivingAndPlayedPods(t, l) })
	t.Run("Services, names and volumes", func(t *testing.T) { testLivingServicesAndVolumes(t, l) })
	t.Run("what happens to pods", func(t *testing.T) { testPodFailures(t, l) })
	t.Run("the runner is killed", func(t *testing.T) { testKilledKubelet(t, l) })
	t.Run("nothing is left", func(t *testing.T) { testStopLeavesNothing(t, l) })
}

func testPodEnvironment(t *testing.T, l *livingCluster) {
	l.api.t = t
	const core = "/api/v1/namespaces/default/"
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	l.api.apply(core+"secrets/s", object{"apiVersion": "v1", "kind": "Secret", "metadata": object{}, "data": object{"key": encoded("secret")}})
	l.api.apply(core+"configmaps/c", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{}, "data": object{"key": "config"}})
	l.createProbePod(t, "sees", func(spec, container object) {
		container["env"] = []any{
			object{"name": "PLAIN", "value": "$(OTHER)-x"}, object{"name": "OTHER", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "key"}}},
			object{"name": "NODE", "valueFrom": object{"fieldRef": object{"fieldPath": "spec.nodeName"}}},
		}
		container["securityContext"] = object{"readOnlyRootFilesystem": true, "runAsUser": 65533}
		spec["securityContext"] = object{"runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532}
		container["volumeMounts"] = []any{
			object{"name": "s", "mountPath": "/srv/s"}, object{"name": "all", "mountPath": "/srv/all"}, object{"name": "work", "mountPath": "/work"},
			object{"name": "one", "mountPath": "/srv/one", "subPath": "key", "readOnly": true},
		}
		spec["volumes"] = []any{
			object{"name": "s", "secret": object{"secretName": "s"}}, object{"name": "work", "emptyDir": object{}}, object{"name": "one", "configMap": object{"name": "c"}},
			object{"name": "all", "projected": object{"sources": []any{
				object{"configMap": object{"name": "c"}}, object{"serviceAccountToken": object{"path": "token", "audience": "test"}},
				object{"downwardAPI": object{"items": []any{object{"path": "app", "fieldRef": object{"fieldPath": "metadata.labels['app']"}}}}},
			}}},
		}
	})
	l.awaitPodReady(t, "sees")
	for _, test := range []struct{ path, of, want string }{
		{"/file", "/srv/s/key", "secret"}, {"/file", "/srv/all/key", "config"}, {"/file", "/srv/one", "config"}, {"/file", "/srv/all/app", "sees"},
		{"/env", "OTHER", "secret"}, {"/env", "PLAIN", "$(OTHER)-x"}, {"/env", "NODE", "one-living-0"}, {"/write", "/work/x", "/work/x"}, {"/file", "/work/x", "written"},
		{"/file", "/etc/hostname", "sees\n"},
	} {
		got, err := l.requestPod(t, "sees", test.path, test.of)
		if assert.NoError(t, err, test.of) {
			assert.Equal(t, test.want, got, test.of)
		}
	}
	token, err := l.requestPod(t, "sees", "/file", "/srv/all/token")
	require.NoError(t, err)
	assert.Len(t, strings.Split(token, "."), 3, "a token")
	_, err = l.requestPod(t, "sees", "/write", "/x")
	assert.ErrorContains(t, err, "read-only file system")
	_, err = l.requestPod(t, "sees", "/file", "/root")
	assert.Error(t, err, "the machine is not there")
	l.api.apply(core+"secrets/s", object{"apiVersion": "v1", "kind": "Secret", "metadata": object{}, "data": object{"key": encoded("changed")}})
	l.requireAnswer(t, "sees", "/file", "/srv/s/key", "changed")
}

// testLivingAndPlayedPods checks that kwok's nodes and kubelets coexist and get their own pods.
func testLivingAndPlayedPods(t *testing.T, l *livingCluster) {
	l.createProbePod(t, "lives", nil)
	l.createProbePod(t, "plays", func(_, container object) { container["image"] = "registry.example.org/other:1" })
	l.createProbePod(t, "both", func(spec, _ object) {
		spec["initContainers"] = []any{object{"name": "init", "image": "registry.example.org/other:1"}}
	})
	for name, node := range map[string]string{"lives": "one-living-0", "plays": "kwok", "both": "kwok"} {
		l.awaitPodReady(t, name)
		pod := l.get(podsPath + name)
		if node == "kwok" {
			assert.NotContains(t, valueAtPath(pod, "spec/nodeName"), "living", name)
			assert.Contains(t, valueAtPath(pod, "status/podIP"), "239.", name)
		} else {
			assert.Equal(t, node, valueAtPath(pod, "spec/nodeName"), name)
		}
	}
	text, messages, code := l.run("logs", "one", "default/lives")
	require.Zero(t, code, messages)
	assert.Equal(t, "probe begins\n", text)
	_, messages, code = l.run("logs", "one", "default/plays")
	assert.Equal(t, 2, code)
	assert.Contains(t, messages, "pod default/plays has no logs: it is played on node one-")
	_, messages, _ = l.run("logs", "one", "default/nobody")
	assert.Contains(t, messages, "there is no pod default/nobody in cluster one")
	// Two pods may use the same port, also one below 1024.
	l.createProbePod(t, "too", nil)
	l.awaitPodReady(t, "too")
	address := valueAtPath(l.get(podsPath+"too"), "status/podIP").(string)
	l.requireAnswer(t, "lives", "/get", "http://"+address+"/env?of=HOSTNAME", "too")
}

// testLivingServicesAndVolumes checks that Services, DNS names and volume claims work as in other
// clusters.
func testLivingServicesAndVolumes(t *testing.T, l *livingCluster) {
	l.api.t = t
	const core = "/api/v1/namespaces/default/"
	for name, spec := range map[string]object{
		"reached":  {"selector": object{"app": "lives"}, "ports": []any{object{"port": 8080, "targetPort": 80}}},
		"balanced": {"type": "LoadBalancer", "selector": object{"app": "lives"}, "ports": []any{object{"port": 81, "targetPort": 80}}},
		"headless": {"clusterIP": "None", "selector": object{"app": "lives"}},
	} {
		l.api.apply(core+"services/"+name, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": spec})
	}
	address := valueAtPath(l.get(podsPath+"lives"), "status/podIP").(string)
	l.requireAnswer(t, "too", "/get", "http://reached:8080/env?of=HOSTNAME", "lives")
	l.requireAnswer(t, "too", "/get", "http://reached.default.svc.cluster.local:8080/healthz", "well")
	l.requireAnswer(t, "too", "/addresses", "headless.default", "["+address+"]")
	l.requireAnswer(t, "too", "/addresses", "kubernetes.default.svc", "[10.96.0.1]")
	_, err := l.requestPod(t, "too", "/addresses", "example.org")
	assert.ErrorContains(t, err, "no such host")
	var balancer string
	require.Eventually(t, func() bool {
		balancer, _ = valueAtPath(l.get(core+"services/balanced"), "status/loadBalancer/ingress[0]/ip").(string)
		return balancer != ""
	}, time.Minute, 100*time.Millisecond)
	l.requireAnswer(t, "too", "/get", "http://"+balancer+":81/env?of=HOSTNAME", "lives")

	out, messages, code := l.run("forward", "one", "default/reached:8080")
	require.Zero(t, code, messages)
	response, err := http.Get("http://" + strings.TrimSpace(out) + "/env?of=HOSTNAME")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "lives", string(text))
	_, messages, code = l.run("forward", "one", "default/reached:80")
	assert.Equal(t, 2, code)
	assert.Contains(t, messages, "the Service default/reached has no TCP port 80: it has 8080")

	resolved, err := exec.Command(l.binary, "--dir", l.dir, "run", "--", "getent", "hosts", "kubernetes.default.svc").CombinedOutput()
	require.NoError(t, err, string(resolved))
	assert.Contains(t, string(resolved), "10.96.0.1 ")
	ours, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	assert.NotContains(t, string(ours), "cluster.local", "the machine has its own")

	l.api.apply(core+"persistentvolumeclaims/data", object{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": "data"},
		"spec": object{"accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Gi"}}},
	})
	claims := func(spec, container object) {
		container["volumeMounts"] = []any{object{"name": "work", "mountPath": "/work"}}
		spec["volumes"] = []any{object{"name": "work", "persistentVolumeClaim": object{"claimName": "data"}}}
	}
	l.createProbePod(t, "keeps", claims)
	l.awaitPodReady(t, "keeps")
	l.requireAnswer(t, "keeps", "/write", "/work/kept", "/work/kept")
	require.NoError(t, l.client.Delete(context.Background(), podsPath+"keeps"))
	l.awaitGone(podsPath + "keeps")
	l.createProbePod(t, "keeps", claims)
	l.awaitPodReady(t, "keeps")
	l.requireAnswer(t, "keeps", "/file", "/work/kept", "written")
}

func testPodFailures(t *testing.T, l *livingCluster) {
	l.createProbePod(t, "ends", nil)
	l.awaitPodReady(t, "ends")
	_, _ = l.requestPod(t, "ends", "/exit", "5")
	pod := l.await(podsPath+"ends", map[string]string{"status/containerStatuses[0]/restartCount": "1", "status/conditions[Ready]/status": "True"})
	assert.EqualValues(t, 5, valueAtPath(pod, "status/containerStatuses[0]/lastState/terminated/exitCode"))
	assert.Equal(t, "probe begins\nprobe was told to end with 5", valueAtPath(pod, "status/containerStatuses[0]/lastState/terminated/message"))
	text, messages, code := l.run("logs", "one", "default/ends", "--previous")
	require.Zero(t, code, messages)
	assert.Contains(t, text, "probe was told to end with 5")

	l.createProbePod(t, "crashes", func(_, container object) {
		container["env"] = []any{object{"name": "CRASH", "value": "unknown flag: --nonsense"}}
	})
	pod = l.await(podsPath+"crashes", map[string]string{"status/containerStatuses[0]/state/waiting/reason": "CrashLoopBackOff"})
	assert.Contains(t, valueAtPath(pod, "status/containerStatuses[0]/lastState/terminated/message"), "probe ends: unknown flag: --nonsense")

	l.createProbePod(t, "in-use", func(spec, container object) {
		spec["hostNetwork"] = true
		container["env"] = []any{object{"name": "PORT", "value": "10250"}}
	})
	pod = l.await(podsPath+"in-use", map[string]string{"status/containerStatuses[0]/state/waiting/reason": "CrashLoopBackOff"})
	assert.Contains(t, valueAtPath(pod, "status/containerStatuses[0]/lastState/terminated/message"), "address already in use")

	l.createProbePod(t, "full", func(spec, container object) {
		container["volumeMounts"] = []any{object{"name": "work", "mountPath": "/work"}}
		spec["volumes"] = []any{object{"name": "work", "emptyDir": object{"medium": "Memory", "sizeLimit": "1Mi"}}}
	})
	l.awaitPodReady(t, "full")
	_, err := l.requestPod(t, "full", "/fill", "/work/x")
	assert.ErrorContains(t, err, "no space left on device")
	l.requireAnswer(t, "full", "/healthz", "", "well")

	l.createProbePod(t, "ill", func(spec, container object) {
		container["livenessProbe"] = object{"httpGet": object{"path": "/healthz", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
		container["volumeMounts"] = []any{object{"name": "work", "mountPath": "/work"}}
		spec["volumes"] = []any{object{"name": "work", "emptyDir": object{}}}
	})
	l.awaitPodReady(t, "ill")
	_, err = l.requestPod(t, "ill", "/write", "/work/ill")
	require.NoError(t, err)
	l.await(podsPath+"ill", map[string]string{"status/containerStatuses[0]/restartCount": "1"})
	require.NoError(t, l.client.Delete(context.Background(), podsPath+"ill"))
	l.awaitGone(podsPath + "ill")
}

// testKilledKubelet checks that pods end with their kubelet and that the next one restarts them.
func testKilledKubelet(t *testing.T, l *livingCluster) {
	status, code := l.status()
	require.Zero(t, code)
	before := valueAtPath(l.get(podsPath+"lives"), "status/containerStatuses[0]/containerID")
	kubelet := processIDs(status)["one/kubelet-0"]
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", kubelet))
	require.NoError(t, err, "it has the number that the machine has for it")
	require.Contains(t, string(line), "one-living-0")
	require.NoError(t, syscall.Kill(kubelet, syscall.SIGKILL))
	address := valueAtPath(l.get(podsPath+"lives"), "status/podIP").(string)
	require.Eventually(t, func() bool {
		_, err := l.proxyClient.Get("http://" + address + "/healthz")
		return err != nil
	}, 10*time.Second, 50*time.Millisecond, "it ends with its runner")
	_, messages, code := l.run("up", "--clusters", "one", "--pods", "run")
	require.Zero(t, code, messages)
	assert.Contains(t, messages, "one/kubelet-0 has ended unexpectedly")
	require.Eventually(t, func() bool {
		now := valueAtPath(l.get(podsPath+"lives"), "status/containerStatuses[0]/containerID")
		return now != nil && now != before
	}, time.Minute, 100*time.Millisecond, "it is started again")
	l.awaitPodReady(t, "lives")
	l.requireAnswer(t, "lives", "/healthz", "", "well")
}

// testStopLeavesNothing checks that stopping leaves no process, mount or namespace.
func testStopLeavesNothing(t *testing.T, l *livingCluster) {
	holder, err := hold.Find(l.dir)
	require.NoError(t, err)
	require.NotNil(t, holder)
	_, messages, code := l.run("up", "--clusters", "one")
	assert.Equal(t, 2, code, "the clusters are of the other sort")
	assert.Contains(t, messages, "--pods run")
	_, messages, code = l.run("down")
	require.Zero(t, code, messages)
	assert.Regexp(t, `^stopped 8 processes \(clusters: 1\) and kept the data in `+l.dir+"\n$", messages)
	requireProcessEnded(t, "holder", holder.PID())
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), l.dir)
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range processes {
		line, err := os.ReadFile(file)
		// The process that cleans up after this test (mortal.RunAfterExit) has the folder in its
		// arguments, too.
		if err == nil && !strings.HasPrefix(string(line), "sh\x00-c\x00cat ") {
			assert.NotContains(t, string(line), l.dir)
		}
	}
	holder, err = hold.Find(l.dir)
	require.NoError(t, err)
	assert.Nil(t, holder)
	_, code = l.status()
	assert.Equal(t, 1, code)
}
