// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	benchSeeds  = 200
	benchShoots = 10_000
)

// largeGarden has 10,000 Shoots in 500 Projects on 200 Seeds, each with a binding, a backup entry
// and other objects. All use one cloud profile.
func largeGarden(b *testing.B) *Handler {
	b.Helper()
	h := newGardenHandler(b)
	kindsByName := map[kind]watchedKind{}
	for _, k := range watchedKinds() {
		kindsByName[k.kind] = k
	}
	learn := func(k kind, namespace, name string, content map[string]any) {
		content["metadata"] = map[string]any{"namespace": namespace, "name": name}
		h.graph.setRelations(relationsOf(kindsByName[k], &unstructured.Unstructured{Object: content}))
	}
	ref := func(name string) map[string]any { return map[string]any{"name": name} }
	for i := range benchSeeds {
		seed := fmt.Sprintf("seed-%03d", i)
		credentials := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup-" + seed}
		learn(kindSeed, "", seed, map[string]any{"spec": map[string]any{"backup": map[string]any{"credentialsRef": credentials}}})
		learn(kindBackupBucket, "", "uid-"+seed, map[string]any{"spec": map[string]any{"seedName": seed, "credentialsRef": credentials}})
		for x := range 10 {
			learn(kindControllerInstallation, "", fmt.Sprintf("extension-%d-%s", x, seed), map[string]any{"spec": map[string]any{"seedRef": ref(seed), "registrationRef": ref(fmt.Sprint("extension-", x)), "deploymentRef": ref(fmt.Sprint("extension-", x))}})
		}
	}
	for i := range benchShoots {
		project, name, seed := fmt.Sprintf("garden-%03d", i%500), fmt.Sprintf("shoot-%05d", i), fmt.Sprintf("seed-%03d", i%benchSeeds)
		learn(kindProject, "", project, map[string]any{"spec": map[string]any{"namespace": project}})
		learn(kindCredentialsBinding, project, "bound", map[string]any{"credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": project, "name": "cloud"}})
		learn(kindBackupEntry, project, name, map[string]any{"spec": map[string]any{"seedName": seed, "bucketName": "uid-" + seed}})
		learn(kindShoot, project, name, map[string]any{"spec": map[string]any{
			"seedName": seed, "credentialsBindingName": "bound", "cloudProfile": ref("large"),
			"dns":       map[string]any{"providers": []any{map[string]any{"secretName": "dns"}}},
			"resources": []any{map[string]any{"name": "r", "resourceRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": name + "-resource"}}},
		}})
	}
	return h
}

func BenchmarkDecision(b *testing.B) {
	h := largeGarden(b)
	who := authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:seed:seed-042", Groups: []string{groupSeeds}}
	for _, c := range []struct{ name, what string }{
		{"Secret", "get secrets garden-042/shoot-00042-resource"},
		{"SecretOfOthers", "get secrets garden-043/shoot-00043-resource"},
		{"CloudProfile", "get cloudprofiles.core.gardener.cloud large"},
		{"SelectedList", "list shoots.core.gardener.cloud field:spec.seedName=seed-042"},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := parseQuestion(b, c.what)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = h.decideFor(who, a)
			}
		})
	}
	b.Run("Webhook", func(b *testing.B) {
		body := `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"` + who.User + `","groups":["` + groupSeeds + `"],"resourceAttributes":{"verb":"get","resource":"secrets","namespace":"garden-042","name":"shoot-00042-resource"}}}`
		b.ReportAllocs()
		for b.Loop() {
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, PathSeed, strings.NewReader(body)))
			require.Equal(b, http.StatusOK, recorder.Code)
		}
	})
}

// BenchmarkGraph builds the graph of a large garden; it measures time and retained memory.
func BenchmarkGraph(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		h := largeGarden(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		vertices, edges := h.graph.size()
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		b.ReportMetric(float64(vertices), "vertices")
		b.ReportMetric(float64(edges), "edges")
		runtime.KeepAlive(h)
	}
}

// BenchmarkChange moves a Shoot from one Seed to another and back.
func BenchmarkChange(b *testing.B) {
	h := largeGarden(b)
	var k watchedKind
	for _, w := range watchedKinds() {
		if w.kind == kindShoot {
			k = w
		}
	}
	statements := make([]*objectRelations, 2)
	for i := range statements {
		statements[i] = relationsOf(k, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "garden-042", "name": "shoot-00042"},
			"spec":     map[string]any{"seedName": fmt.Sprintf("seed-%03d", 42+i), "credentialsBindingName": "bound", "cloudProfile": map[string]any{"name": "large"}},
		}})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		h.graph.setRelations(statements[i%2])
	}
}
