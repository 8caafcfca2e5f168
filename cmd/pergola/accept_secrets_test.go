// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/hack/testselection"
	"github.com/pergola-dev/pergola/schemas/report"
)

// secretCase is a file of the corpus: an object before and after, an error text, and forbidden, the
// strings that no output may contain.
type secretCase struct {
	name          string
	forbidden     []string
	live, desired string
	text          string
	// outputCounts counts the exit codes per command, and the outputs that contain one of the
	// expected words.
	outputCounts map[string]int
}

func secretCases(t *testing.T) []secretCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "secrets", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	forbidden := regexp.MustCompile(`(?m)^# forbidden: (.*)$`)
	var out []secretCase
	said := map[string]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		c := secretCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), outputCounts: said}
		parts := strings.Split("\n"+string(raw), "\n--- # ")
		if found := forbidden.FindStringSubmatch(parts[0]); found != nil {
			require.NoError(t, json.Unmarshal([]byte(found[1]), &c.forbidden), file)
		}
		for _, part := range parts[1:] {
			name, body, _ := strings.Cut(part, "\n")
			switch name {
			case "live":
				c.live = body + "\n"
			case "desired":
				c.desired = body + "\n"
			case "text":
				var text struct{ Text string }
				require.NoError(t, yaml.Unmarshal([]byte(body), &text), file)
				c.text = text.Text
			}
		}
		out = append(out, c)
	}
	return out
}

// assertNoSecret fails if the output of a command contains a forbidden string.
func (c secretCase) assertNoSecret(t *testing.T, what, said string) {
	t.Helper()
	for _, secret := range c.forbidden {
		if at := strings.Index(said, secret); at >= 0 {
			assert.Fail(t, "a secret is shown", "%s: %s shows %q: …%s…", c.name, what, secret, said[max(0, at-200):min(len(said), at+len(secret)+100)])
		}
	}
}

// run runs a command line and checks its whole output.
func (c secretCase) run(t *testing.T, stdin string, args ...string) commandResult {
	t.Helper()
	o := pergolaWith(t, stdin, args...)
	c.assertNoSecret(t, strings.Join(args, " "), o.stdout+o.stderr)
	for _, word := range []string{"hidden value", "text withheld", "conflict", "admission policy", "is invalid", "immutable", "not valid"} {
		if strings.Contains(o.stdout+o.stderr, word) {
			c.outputCounts[word]++
		}
	}
	c.outputCounts[fmt.Sprint("exit code ", o.code, " of ", args[0])]++
	return o
}

// secretObject parses the document of a case.
func secretObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

const caseLandscape = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: small\nspec:\n  catalogue:\n    version: " + components.Version +
	"\n  clusters:\n    runtime: {context: test}\n    virtual: {context: test}\n"

// caseRepository is a repository with a landscape of one object: the live object in the first
// commit, the desired one in the second.
func caseRepository(t *testing.T, c secretCase) string {
	t.Helper()
	dir, commit := repository(t)
	for _, name := range []string{"seed.yaml", "secrets.yaml", "project.yaml"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	writeFile(t, dir, "landscape.yaml", caseLandscape)
	writeFile(t, dir, "revision.yaml", "# before\n")
	writeFile(t, dir, "namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: bar}\n")
	if c.live != "" {
		writeFile(t, dir, "object.yaml", c.live)
	}
	commit()
	if c.desired != "" {
		writeFile(t, dir, "object.yaml", c.desired)
	} else if c.live != "" {
		require.NoError(t, os.Remove(filepath.Join(dir, "object.yaml")))
	}
	writeFile(t, dir, "revision.yaml", "# after\n")
	commit()
	return dir
}

// caseObjectName returns the object of a case as `why` and other commands address it, "" without an
// object.
func caseObjectName(t *testing.T, c secretCase) (kind, name string, keys []string) {
	text := c.desired
	if text == "" {
		text = c.live
	}
	if text == "" {
		return "", "", nil
	}
	o := secretObject(t, text)
	for _, part := range []string{"data", "stringData", "spec"} {
		if m, ok := o.Object[part].(map[string]any); ok {
			for key := range m {
				keys = append(keys, part+"."+key, part+"["+key+"]")
			}
		}
	}
	return o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), append(keys, "data", "stringData", "metadata.annotations", "spec")
}

// TestNoCommandShowsASecret: no output and no error of a command that reads files contains a secret
// of the corpus. TestNoClusterMakesACommandShowASecret tests the cases that have an error text and
// no object.
func TestNoCommandShowsASecret(t *testing.T) {
	for _, c := range secretCases(t) {
		if c.live+c.desired == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := caseRepository(t, c)
			for _, format := range report.Formats() {
				c.run(t, "", "validate", dir, "-o", format)
				c.run(t, "", "validate", dir, "--from", "HEAD~1", "-o", format)
			}
			for _, format := range []string{"text", "markdown", "json", "html"} {
				c.run(t, "", "diff", dir, "--from", "HEAD~1", "--to", "HEAD", "-o", format)
				c.run(t, "", "diff", dir, "--from", "HEAD", "--to", "HEAD~1", "-o", format)
				c.run(t, "", "diff", "--all", filepath.Dir(dir), "--from", "HEAD~1", "-o", format)
			}
			for _, format := range []string{"yaml", "json"} {
				c.run(t, "", "render", dir, "-o", format)
			}
			c.run(t, "", "golden", dir, "--update")
			_ = filepath.WalkDir(filepath.Join(dir, "golden"), func(path string, entry os.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					text, err := os.ReadFile(path)
					require.NoError(t, err)
					c.assertNoSecret(t, "golden file "+entry.Name(), string(text))
				}
				return nil
			})
			if c.live != "" {
				writeFile(t, dir, "object.yaml", c.live)
			}
			for _, format := range []string{"text", "json", "github"} {
				c.run(t, "", "golden", dir, "-o", format)
			}
			kind, name, keys := caseObjectName(t, c)
			c.run(t, "", "why", dir, kind, name)
			for _, key := range keys {
				c.run(t, "", "why", dir, kind, name+"."+key)
				c.run(t, "", "why", dir, kind, name+"."+key, "-o", "json")
			}
			for _, text := range []string{c.live, c.desired} {
				for _, format := range []string{"json", "text"} {
					c.run(t, text, "health", "-o", format)
				}
			}
		})
	}
}

// testServer starts an API server and writes a kubeconfig for it.
func testServer(t *testing.T) (client.Client, string) {
	t.Helper()
	config := apiserver.Start(t)
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: slices.Concat(crds.ByGroup("core.gardener.cloud"), crds.ByGroup("landscape.pergola.dev"))})
	require.NoError(t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c, kubeconfigOf(t, config)
}

func kubeconfigOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, file))
	return file
}

// installRejectingPolicy makes an API server reject the objects named refused-CASE like a webhook:
// with the text of the case, or by quoting the object.
func installRejectingPolicy(t *testing.T, c client.Client, cases []secretCase) {
	t.Helper()
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets", "configmaps"}},
			},
		}}},
	}
	var worded []string
	for _, each := range cases {
		if each.text != "" {
			worded = append(worded, strconv.Quote("refused-"+each.name))
			spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{
				Expression: "object.metadata.name != " + worded[len(worded)-1], Message: strings.Join(strings.Fields(each.text), " ")})
		}
	}
	spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{
		Expression:        `!object.metadata.name.startsWith("refused-") || object.metadata.name in [` + strings.Join(worded, ", ") + "]",
		MessageExpression: `"object {" + object.data.map(k, "\"" + k + "\":\"" + string(object.data[k]) + "\"").join(",") + "} violates policy"`,
	})
	require.NoError(t, c.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refusing"}, Spec: spec}))
	require.NoError(t, c.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "refusing"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "refusing",
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}))
	said := ""
	require.Eventually(t, func() bool {
		err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused-probe", Namespace: "default"}, Data: map[string]string{"k": "probed"}}, client.DryRunAll)
		said = fmt.Sprint(err)
		return strings.Contains(said, "probed")
	}, 30*time.Second, 50*time.Millisecond, "a policy quotes what it refuses")
}

// liveObjectOfCase returns the object of a case as another tool created it, or nil.
func liveObjectOfCase(t *testing.T, c secretCase) *unstructured.Unstructured {
	t.Helper()
	if c.live == "" {
		return nil
	}
	return secretObject(t, c.live)
}

// recordedObjects returns all objects that can record the actions of a command, except the declared
// ones.
func recordedObjects(t *testing.T, c client.Client) string {
	t.Helper()
	var events corev1.EventList
	require.NoError(t, c.List(t.Context(), &events))
	var maps corev1.ConfigMapList
	require.NoError(t, c.List(t.Context(), &maps, client.InNamespace("garden")))
	var leases coordinationv1.LeaseList
	require.NoError(t, c.List(t.Context(), &leases))
	var namespaces corev1.NamespaceList
	require.NoError(t, c.List(t.Context(), &namespaces))
	raw, err := json.Marshal([]any{events.Items, maps.Items, leases.Items, namespaces.Items})
	require.NoError(t, err)
	return string(raw)
}

// TestNoClusterMakesACommandShowASecret: commands that ask a cluster show no secret either, nor do
// the objects that they write besides the declared one. This holds for conflicts, invalid objects
// and webhooks that quote the object.
func TestNoClusterMakesACommandShowASecret(t *testing.T) {
	api, kubeconfig := testServer(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	cases := secretCases(t)
	// Each listed case covers one way in which a text of the cluster reaches the output.
	cases = slices.DeleteFunc(cases, func(c secretCase) bool { return !testselection.HasPart(t, c.name) })
	installRejectingPolicy(t, api, cases)
	there := 0
	for _, namespace := range []string{"garden", "bar"} {
		require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	object := secretObject(t, "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: small, namespace: garden}\nspec: {catalogue: {version: "+components.Version+"}}\n")
	require.NoError(t, api.Create(t.Context(), object))
	for _, c := range cases {
		if c.live+c.desired == "" {
			c.desired = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: bar}\ndata: {k: v}\n"
		}
		t.Run(c.name, func(t *testing.T) {
			dir := caseRepository(t, c)
			live := liveObjectOfCase(t, c)
			if live != nil {
				// An object that the API server rejects does not exist; then the server rejects
				// ours, too.
				if err := api.Create(t.Context(), live.DeepCopy(), client.FieldOwner("kubectl-edit")); err == nil {
					there++
				}
			}
			ask := func(args ...string) { c.run(t, "", append(args, "--timeout", "20s")...) }
			all := func() {
				for _, format := range []string{"text", "markdown", "json", "html"} {
					ask("diff", dir, "--live", "-o", format)
				}
				for _, format := range []string{"text", "json"} {
					ask("apply", dir, "--dry-run", "-o", format)
					ask("status", dir, "--live", "--components", "-o", format)
				}
			}
			all()
			ask("apply", dir, "-v")
			if live != nil {
				ask("apply", dir, "-v", "--force-conflicts", live.GetKind()+" "+live.GetNamespace()+"/"+live.GetName())
			}
			refused := secretObject(t, c.desired)
			if c.desired == "" || refused.GetName() == "" {
				return
			}
			refused.SetName("refused-" + c.name)
			text, err := yaml.Marshal(refused.Object)
			require.NoError(t, err)
			writeFile(t, dir, "object.yaml", string(text))
			all()
			ask("apply", dir, "-v")
			c.run(t, "", "tree", "landscape.small")
			c.run(t, "", "history", "small")
		})
		c.assertNoSecret(t, "the cluster", recordedObjects(t, api))
	}
	assert.Positive(t, there)
	for _, word := range []string{"hidden value", "text withheld", "conflict", "immutable", "not valid", "exit code 0 of apply", "exit code 1 of apply", "exit code 1 of diff"} {
		assert.Positive(t, cases[0].outputCounts[word], "no command came to: %s", word)
	}
}
