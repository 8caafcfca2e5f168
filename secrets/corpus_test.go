// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// recordedSecret is a Secret of upstream's secrets manager, without its values.
type recordedSecret struct {
	name, namespace string
	labels          map[string]string
	kind            corev1.SecretType
	keys            []string
}

func recordedSecrets(t *testing.T) map[string][]recordedSecret {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "objects", "*", "*", "reconcile-example.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string][]recordedSecret{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
		for {
			doc, err := reader.Read()
			if err != nil {
				break
			}
			if !bytes.Contains(doc, []byte("managed-by: secrets-manager")) {
				continue
			}
			var s struct {
				Kind     string
				Metadata struct {
					Name, Namespace string
					Labels          map[string]string
				}
				Type corev1.SecretType
				Data map[string]any
			}
			require.NoError(t, yaml.Unmarshal(doc, &s), file)
			if s.Kind != "Secret" {
				continue
			}
			r := recordedSecret{name: s.Metadata.Name, namespace: s.Metadata.Namespace, labels: s.Metadata.Labels, kind: s.Type}
			for key := range s.Data {
				r.keys = append(r.keys, key)
			}
			owner := filepath.Base(filepath.Dir(filepath.Dir(file)))
			out[owner] = append(out[owner], r)
		}
	}
	return out
}

// TestConformanceNames computes the name of every recorded Secret from its labels.
func TestConformanceNames(t *testing.T) {
	count := 0
	for owner, list := range recordedSecrets(t) {
		for _, r := range list {
			count++
			isCA := strings.HasPrefix(r.labels[labelName], "ca") && r.labels[labelBundleFor] == "" && r.labels[labelChecksumSigningCA] == ""
			static := owner == "shoot" && isCA && r.labels[labelName] != clientCAWithHashedName
			assert.Equal(t, r.name, objectName(r.labels[labelName], r.labels, static))
		}
	}
	assert.Greater(t, count, 80)
}

// TestConformanceChecksums plans requests as a component declares them, and expects upstream's
// names.
func TestConformanceChecksums(t *testing.T) {
	recordings := recordedSecrets(t)
	for _, c := range []struct{ owner, name, request string }{
		{"garden", "ca", `{"kind":"ca","commonName":"kubernetes","rotation":"keepOld"}`},
		{"garden", "ca-client", `{"kind":"ca","commonName":"kubernetes-client","rotation":"keepOld"}`},
		{"garden", "ca-etcd", `{"kind":"ca","commonName":"etcd","rotation":"keepOld"}`},
		{"garden", "ca-virtual-garden-istio-basic-auth-server", `{"kind":"ca","commonName":"istio-basic-auth-server","validity":"720h","rotation":"keepOld","ignoreOldSecretsAfter":"24h"}`},
		{"seed", "ca-seed", `{"kind":"ca","commonName":"kubernetes","validity":"720h","rotation":"keepOld","ignoreOldSecretsAfter":"24h"}`},
		{"garden", "service-account-key", `{"kind":"rsaPrivateKey","bits":4096,"rotation":"keepOld","persist":true}`},
		{"garden", "gardener-apiserver-workload-identity-signing-key", `{"kind":"rsaPrivateKey","rotation":"keepOld"}`},
		{"shoot", "ssh-keypair", `{"kind":"sshKeypair","rotation":"keepOld","persist":true}`},
		{"shoot", "kube-apiserver-etcd-encryption-key", `{"kind":"etcdEncryptionKey","provider":"aescbc","rotation":"keepOld","persist":true}`},
		{"shoot", "kube-apiserver-static-token", `{"kind":"staticToken","users":[{"username":"health-check","userID":"health-check"}],"persist":true}`},
		{"garden", "plutono-admin", `{"kind":"basicAuth","validity":"720h"}`},
		{"shoot", "ca", `{"kind":"ca","commonName":"kubernetes","rotation":"keepOld","persist":true}`},
		{"shoot", "ca-client", `{"kind":"ca","commonName":"kubernetes-client","rotation":"keepOld","persist":true}`},
		{"shoot", "ca-front-proxy", `{"kind":"ca","commonName":"front-proxy","rotation":"keepOld","persist":true}`},
		{"shoot", "ca-vpn", `{"kind":"ca","commonName":"vpn","rotation":"keepOld","persist":true}`},
		{"shoot", "ca-kubelet", `{"kind":"ca","commonName":"kubelet","rotation":"keepOld","persist":true}`},
	} {
		t.Run(c.owner+"/"+c.name, func(t *testing.T) {
			config, err := ParseConfig("test", c.name, json.RawMessage(c.request))
			require.NoError(t, err)
			var want recordedSecret
			for _, r := range recordings[c.owner] {
				if r.labels[labelName] == c.name {
					want = r
				}
			}
			require.NotEmpty(t, want.name, "not recorded")

			identity := "gardener-operator"
			opts := []Option{WithKeyBits(testBits)}
			if c.owner != "garden" {
				identity = "gardenlet"
			}
			if c.owner == "shoot" {
				opts = append(opts, WithStaticCANames())
			}
			clk := clocktesting.NewFakeClock(startTime)
			m := New(newMemoryStore(clk), want.namespace, identity, clk, opts...)
			config.Bits = 0 // the size is not generated here, but hashed like upstream's
			p, err := m.planSecret(config)
			require.NoError(t, err)
			assert.Equal(t, want.name, p.objectName)
			assert.Equal(t, want.labels[labelChecksumConfig], p.labels[labelChecksumConfig])

			ref, err := m.Generate(t.Context(), config)
			require.NoError(t, err)
			assert.Equal(t, want.name, ref.Secret)
			made, err := m.store.Get(t.Context(), want.namespace, ref.Secret)
			require.NoError(t, err)
			assert.Equal(t, want.kind, made.Type)
			var keys []string
			for key := range made.Data {
				keys = append(keys, key)
			}
			assert.ElementsMatch(t, want.keys, keys)
			if c.name == "service-account-key" && c.owner == "garden" {
				assert.Contains(t, want.labels, labelPersist)
			}
			var wantLabels, gotLabels []string
			for l := range want.labels {
				wantLabels = append(wantLabels, l)
			}
			for l := range made.Labels {
				gotLabels = append(gotLabels, l)
			}
			assert.ElementsMatch(t, wantLabels, gotLabels)
		})
	}
}
