// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/childprocess"
)

// TestGardensStart starts every variant of the Garden: kube-apiserver and kube-controller-manager
// of its version accept the rendered flags and files and become ready. They would exit at an
// unknown flag, field, gate, controller or resource.
func TestGardensStart(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	pki := newTestPKI(t)
	etcd := startProgram(t, pki, program{name: "etcd", args: func(dir string, ports []int) []string {
		client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
		return []string{"--data-dir=" + dir, "--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer, "--unsafe-no-fsync"}
	}, ready: func(ports []int) string { return fmt.Sprintf("http://127.0.0.1:%d/health", ports[0]) }})

	eachVariant(t, func(t *testing.T, v variantResult) {
		for i, in := range v.inputs {
			if in.Owner.Kind != "garden" {
				continue
			}
			secrets, err := v.results[i].Secrets()
			require.NoError(t, err)
			files := mountedFiles{pki: pki, encryption: encryptionOf(t, secrets), objects: v.results[i].Bundles}
			api := files.container(t, "virtual-garden-kube-apiserver")
			if api.emulated < "1.33" {
				t.Skipf("kube-apiserver of the binary cannot be one of %s", api.emulated)
			}
			flags := setFlags(t, api.args, map[string]string{
				"--etcd-servers": fmt.Sprintf("http://127.0.0.1:%d", etcd[0]),
				"--bind-address": "127.0.0.1", // IPv6 may be missing
				"--secure-port":  "PORT",
			})
			for j, flag := range flags {
				flags[j] = regexp.MustCompile(`#https://[^,]+`).ReplaceAllString(flag, fmt.Sprintf("#http://127.0.0.1:%d", etcd[0]))
			}
			flags = append(flags, "--emulated-version="+api.emulated, "--etcd-prefix=/"+path.Base(t.Name()))
			server := startProgram(t, pki, program{name: "kube-apiserver", args: func(dir string, ports []int) []string {
				return files.writeFiles(t, dir, ports[0], flags)
			}, ready: func(ports []int) string { return fmt.Sprintf("https://127.0.0.1:%d/readyz", ports[0]) }})

			manager := files.container(t, "virtual-garden-kube-controller-manager")
			flags = append(setFlags(t, manager.args, map[string]string{"--secure-port": "PORT"}), "--bind-address=127.0.0.1", "--emulated-version="+manager.emulated, "--leader-elect=false")
			files.server = server[0]
			startProgram(t, pki, program{name: "kube-controller-manager", args: func(dir string, ports []int) []string {
				return files.writeFiles(t, dir, ports[0], flags)
			}, ready: func(ports []int) string { return fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[0]) }})
		}
	})
}

// containerCommand is the command of a Deployment.
type containerCommand struct {
	args     []string
	emulated string
}

// mountedFiles are the mounted files of containers: rendered, or made here if a cluster generates
// them.
type mountedFiles struct {
	pki        *testPKI
	encryption string
	objects    []Bundle
	// server is the port of the API server in kubeconfigs; it is zero for none.
	server int
}

func (f mountedFiles) object(kind, name string) *unstructured.Unstructured {
	for _, b := range f.objects {
		for _, o := range b.Objects {
			if o.GetKind() == kind && o.GetName() == name {
				return o.Unstructured
			}
		}
	}
	return nil
}

func (f mountedFiles) container(t *testing.T, deployment string) containerCommand {
	t.Helper()
	o := f.object("Deployment", deployment)
	require.NotNil(t, o)
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	first := containers[0].(map[string]any)
	var out containerCommand
	for _, field := range []string{"command", "args"} {
		list, _, err := unstructured.NestedStringSlice(first, field)
		require.NoError(t, err)
		out.args = append(out.args, list...)
	}
	out.args = out.args[1:]
	parts := regexp.MustCompile(`:v(\d+\.\d+)\.`).FindStringSubmatch(first["image"].(string))
	require.NotNil(t, parts, first["image"])
	out.emulated = parts[1]
	return out
}

// setFlags sets other values for existing flags.
func setFlags(t *testing.T, flags []string, values map[string]string) []string {
	t.Helper()
	out := slices.Clone(flags)
	for name, value := range values {
		i := slices.IndexFunc(out, func(flag string) bool { return strings.HasPrefix(flag, name+"=") })
		require.GreaterOrEqual(t, i, 0, "flag %s", name)
		out[i] = name + "=" + value
	}
	return out
}

// mountedPath is a file of a container, in a flag or in another file.
var mountedPath = regexp.MustCompile(`/(?:srv/kubernetes|etc/kubernetes|var/lib/kube-controller-manager-server|var/run/secrets/gardener\.cloud)/[\w./-]+`)

// writeFiles copies the files in flags, and the files that these name, into a folder. It returns
// the flags with the new paths.
func (f mountedFiles) writeFiles(t *testing.T, dir string, port int, flags []string) []string {
	t.Helper()
	rendered := map[string]string{}
	for _, b := range f.objects {
		for _, o := range b.Objects {
			if data, _, _ := unstructured.NestedStringMap(o.Object, "data"); o.GetKind() == "ConfigMap" && o.GetNamespace() == "garden" {
				for name, text := range data {
					// Mounted files of a component have unique names; others do not matter.
					for _, folder := range mountsOf(t, b, o.GetName()) {
						rendered[folder+"/"+name] = text
					}
				}
			}
		}
	}
	var place func(text string) string
	place = func(text string) string {
		return mountedPath.ReplaceAllStringFunc(text, func(file string) string {
			to := filepath.Join(dir, file)
			if _, err := os.Stat(to); err == nil {
				return to
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			require.NoError(t, os.WriteFile(to, nil, 0o600)) // it may name itself
			content, known := rendered[file]
			if !known {
				content = f.generatedFile(t, file)
			}
			require.NoError(t, os.WriteFile(to, []byte(place(content)), 0o600))
			return to
		})
	}
	out := make([]string, len(flags))
	for i, flag := range flags {
		out[i] = strings.ReplaceAll(place(flag), "=PORT", fmt.Sprintf("=%d", port))
	}
	return out
}

// mountsOf are the folders where the Deployment of a bundle mounts a ConfigMap.
func mountsOf(t *testing.T, b Bundle, configMap string) []string {
	t.Helper()
	var out []string
	for _, o := range b.Objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		volumes, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		require.NoError(t, err)
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		for _, v := range volumes {
			if name, _, _ := unstructured.NestedString(v.(map[string]any), "configMap", "name"); name != configMap {
				continue
			}
			mounts, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "volumeMounts")
			require.NoError(t, err)
			for _, m := range mounts {
				if mount := m.(map[string]any); mount["name"] == v.(map[string]any)["name"] {
					out = append(out, mount["mountPath"].(string))
				}
			}
		}
	}
	return out
}

// generatedFile is the file that the secrets manager or the user would provide.
func (f mountedFiles) generatedFile(t *testing.T, file string) string {
	t.Helper()
	switch name := path.Base(file); {
	case strings.Contains(file, "/ca-front-proxy/"):
		return f.pki.frontProxyCA // an API server requires a separate one
	case name == "bundle.crt", name == "ca.crt":
		return f.pki.ca
	case name == "ca.key":
		return f.pki.caKey
	case name == "tls.crt":
		return f.pki.certificate
	case name == "tls.key":
		return f.pki.key
	case name == "id_rsa", name == "bundle.key":
		return f.pki.signingKey
	case name == "static_tokens.csv":
		return "token,health-check,health-check\n"
	case name == "encryption-configuration.yaml":
		return f.encryption
	case strings.Contains(name, "kubeconfig"):
		text, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Config", "current-context": "a",
			"contexts": []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "a", "user": "a"}}},
			"clusters": []any{map[string]any{"name": "a", "cluster": map[string]any{
				"server": fmt.Sprintf("https://127.0.0.1:%d", max(f.server, 1)), "certificate-authority-data": []byte(f.pki.ca),
			}}},
			"users": []any{map[string]any{"name": "a", "user": map[string]any{"client-certificate-data": []byte(f.pki.certificate), "client-key-data": []byte(f.pki.key)}}},
		})
		require.NoError(t, err)
		return string(text)
	}
	t.Fatalf("nobody makes the file %s", file)
	return ""
}

// encryptionOf is the configuration that the secrets manager makes from a request.
func encryptionOf(t *testing.T, secrets map[string]json.RawMessage) string {
	t.Helper()
	var config struct{ Resources, EncryptedResources []string }
	require.NoError(t, json.Unmarshal(secrets["kube-apiserver-etcd-encryption-configuration"], &config))
	var key struct{ Provider string }
	require.NoError(t, json.Unmarshal(secrets["kube-apiserver-etcd-encryption-key"], &key))
	resources := slices.Concat(config.Resources, config.EncryptedResources)
	slices.Sort(resources)
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
		"resources": []any{map[string]any{"resources": slices.Compact(resources), "providers": []any{
			map[string]any{key.Provider: map[string]any{"keys": []any{map[string]any{"name": "key", "secret": bytes.Repeat([]byte{1}, 32)}}}},
			map[string]any{"identity": map[string]any{}},
		}}},
	})
	require.NoError(t, err)
	return string(text)
}

// testPKI has one certificate for everything: of an administrator, and for the common address.
type testPKI struct {
	ca, caKey, frontProxyCA, certificate, key, signingKey string
	client                                                *http.Client
}

func newTestPKI(t *testing.T) *testPKI {
	t.Helper()
	encoded := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	newKey := func() (*ecdsa.PrivateKey, string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		der, err := x509.MarshalECPrivateKey(key)
		require.NoError(t, err)
		return key, encoded("EC PRIVATE KEY", der)
	}
	until := time.Now().Add(time.Hour)
	var out testPKI
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	newAuthority := func() (key *ecdsa.PrivateKey, keyText, certificate string) {
		key, keyText = newKey()
		der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
		require.NoError(t, err)
		return key, keyText, encoded("CERTIFICATE", der)
	}
	caKey, text, ca := newAuthority()
	out.caKey, out.ca = text, ca
	_, _, out.frontProxyCA = newAuthority()
	key, text := newKey()
	out.key = text
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "administrator", Organization: []string{"system:masters"}}, NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, &key.PublicKey, caKey)
	require.NoError(t, err)
	out.certificate = encoded("CERTIFICATE", der)
	signing, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	out.signingKey = encoded("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(signing))

	pair, err := tls.X509KeyPair([]byte(out.certificate), []byte(out.key))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(out.ca)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true}
	out.client = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return &out
}

// program starts with its own folder and two ports, and is ready when the address responds.
type program struct {
	name  string
	args  func(dir string, ports []int) []string
	ready func(ports []int) string
}

// startProgram returns the ports of a ready program. It ends with the test.
func startProgram(t *testing.T, pki *testPKI, p program) []int {
	t.Helper()
	// A free port may be in use when the program opens it.
	for attempt := 1; ; attempt++ {
		ports, output, err := tryProgram(t, pki, p)
		if err == nil {
			return ports
		}
		if attempt == 3 || !strings.Contains(output, "address already in use") {
			lines := strings.Split(strings.TrimSpace(output), "\n")
			require.NoError(t, err, "%s:\n%s", p.name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	}
}

func tryProgram(t *testing.T, pki *testPKI, p program) (ports []int, output string, err error) {
	t.Helper()
	var listeners []net.Listener
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	cmd := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), p.name), p.args(dir, ports)...)
	cmd.Stdout, cmd.Stderr = log, log
	for _, listener := range listeners {
		require.NoError(t, listener.Close())
	}
	require.NoError(t, childprocess.Start(cmd))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if cmd.Process.Kill() == nil {
			<-ended
		}
	})

	deadline := time.NewTimer(3 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	address, last := p.ready(ports), errors.New("nobody was asked")
	for {
		select {
		case err := <-ended:
			ended <- err
			text, readErr := os.ReadFile(log.Name())
			require.NoError(t, readErr)
			return nil, string(text), fmt.Errorf("it has ended: %w", cmp.Or(err, errors.New("without an error")))
		case <-deadline.C:
			text, readErr := os.ReadFile(log.Name())
			require.NoError(t, readErr)
			return nil, string(text), fmt.Errorf("it is not ready: %w", last)
		case <-again.C:
		}
		response, err := pki.client.Get(address)
		if err != nil {
			last = err
			continue
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			return ports, "", nil
		}
		last = fmt.Errorf("%s says %s %s", address, response.Status, said)
	}
}
