// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// loadExamples are the landscapes of this repository.
func loadExamples(t *testing.T) []*landscapes.Landscape {
	t.Helper()
	var out []*landscapes.Landscape
	for _, dir := range []string{"local", "examples/layered/production"} {
		path := filepath.Join("..", "landscapes", filepath.FromSlash(dir))
		options := landscapes.Options{Root: ".."}
		if key, err := os.ReadFile(filepath.Join(path, ".sops", "age.key")); err == nil {
			options.AgeIdentities, err = landscapes.ParseAgeIdentities(string(key))
			require.NoError(t, err)
		}
		l, violations, err := landscapes.Load(testContext(t), path, options)
		require.NoError(t, err)
		require.Empty(t, violations)
		out = append(out, l)
	}
	return out
}

// renderedObjects returns every object that the landscapes render for a kind of cluster, without
// foreign namespaces.
func renderedObjects(t *testing.T, clusters ...string) []*unstructured.Unstructured {
	t.Helper()
	if renderedExamples == nil {
		renderedExamples = renderExamples(t)
	}
	var out []*unstructured.Unstructured
	seen := map[apply.Ref]bool{}
	for _, b := range renderedExamples {
		if !slices.Contains(clusters, b.Cluster) {
			continue
		}
		for _, object := range b.Objects {
			o := resolvePlaceholders(t, object.Unstructured)
			if ref := apply.RefOf(o); !seen[ref] {
				seen[ref] = true
				out = append(out, o)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

// renderedExamples is set by the first test that needs it.
var renderedExamples []render.Bundle

// renderExamples renders the landscapes unchanged, and with their disabled components enabled.
func renderExamples(t *testing.T) []render.Bundle {
	t.Helper()
	more := loadExamples(t)
	for _, l := range more {
		l.Config.Spec.FeatureGates = &landscapev1alpha1.FeatureGates{VictoriaLogsBackend: ptr.To(true), DisableNginxIngressInGarden: ptr.To(false), DefaultSeccompProfile: ptr.To(true)}
		for i := range l.Declarations {
			if o := l.Declarations[i].Object(); o.GetKind() == "Garden" {
				require.NoError(t, unstructured.SetNestedField(o.Object, true, "spec", "runtimeCluster", "settings", "persistentVolumeClaimAutoscaler", "enabled"))
			}
		}
	}
	var out []render.Bundle
	for _, l := range append(loadExamples(t), more...) {
		bundles, err := render.All(l, components.FS, nil, render.WithTime(time.Now()))
		require.NoError(t, err)
		out = append(out, bundles...)
	}
	return out
}

// applyAndDelete applies everything as a ServiceAccount with the engine of the role, checks its
// other rights, and deletes everything.
func applyAndDelete(t *testing.T, account string, objects []*unstructured.Unstructured) {
	t.Helper()
	ctx := testContext(t)
	requests := &requestLog{}
	c := connectAs(t, account, requests)
	engine := conventions.NewEngine(apply.Options{})
	// One inventory each: without a garbage collector, some deletions of the other one are stuck.
	inventory := apply.NewConfigMapInventory(c, "garden", "pergola-inventory.test-"+account[strings.LastIndex(account, "-")+1:], nil)
	set := apply.Set{Name: "test/" + strings.ReplaceAll(account, ":", "."), Objects: objects, FieldManager: "pergola", Force: true}
	for i, o := range objects {
		if o.GetKind() == "Namespace" { // no controller manager finalizes namespaces here
			objects[i] = o.DeepCopy()
			objects[i].SetAnnotations(map[string]string{"resources.gardener.cloud/keep-object": "true"})
		}
	}
	t.Cleanup(func() { removeFinalizers(t, objects) })
	result, err := engine.Apply(ctx, c, set, inventory, apply.ApplyOptions{})
	require.NoError(t, err)
	require.NotNil(t, result)
	requireVerbs(t, account, objects)
	_, err = engine.Delete(ctx, c, set, inventory, apply.DeleteOptions{Timeout: time.Second})
	for _, e := range asErrors(err) {
		// No garbage collector handles Deployments here.
		assert.Equal(t, apply.ReasonStuckDeletion, e.Reason, e.Error())
	}
	assert.Empty(t, requests.forbiddenRequests())
}

// removeFinalizers removes finalizers of controllers that do not run here.
func removeFinalizers(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	admin := connectAs(t, "", nil)
	for _, o := range objects {
		live, err := admin.GetLive(testContext(t), apply.RefOf(o))
		if err == nil && live.GetDeletionTimestamp() != nil && o.GetKind() != "Namespace" {
			_, err = admin.MergePatch(testContext(t), apply.RefOf(o), map[string]any{"metadata": map[string]any{"finalizers": nil}}, "test", "")
			assert.NoError(t, client.IgnoreNotFound(err), "it went in the meantime")
		}
	}
}

func asErrors(err error) []*apply.ObjectError {
	if errs, ok := err.(apply.Errors); ok {
		return errs
	}
	return nil
}

// requireVerbs checks each verb that the engine uses with the API server.
func requireVerbs(t *testing.T, account string, objects []*unstructured.Unstructured) {
	t.Helper()
	admin := connectAs(t, "", nil)
	reviews, err := kubernetes.NewForConfig(server)
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, o := range objects {
		mapping, err := admin.Mapping(testContext(t), o.GroupVersionKind())
		require.NoError(t, err)
		for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
			ns := o.GetNamespace()
			if verb == "list" || verb == "watch" {
				ns = "" // the engine has one watch per kind
			}
			key := fmt.Sprint(verb, mapping.Resource, ns)
			if asked[key] {
				continue
			}
			asked[key] = true
			review, err := reviews.AuthorizationV1().SubjectAccessReviews().Create(testContext(t), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User: "system:serviceaccount:" + account,
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: verb, Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource, Namespace: ns, Name: o.GetName(),
					},
				},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			assert.True(t, review.Status.Allowed, "%s may not %s %s in namespace %q", account, verb, mapping.Resource.GroupResource(), ns)
		}
	}
}

func TestRightsOfTheOperator(t *testing.T) {
	admin := connectAs(t, "", nil)
	in := renderRole(t, deploy.Operator)
	applyAsAdmin(t, admin, append(in.Definitions, in.Objects...)...)
	objects := renderedObjects(t, render.ClusterRuntime)
	applyAndDelete(t, "garden:pergola-operator", objects)
}

func TestRightsOfTheGardenlet(t *testing.T) {
	admin := connectAs(t, "", nil)
	in := renderRole(t, deploy.Gardenlet)
	applyAsAdmin(t, admin, in.Objects...)
	objects := renderedObjects(t, render.ClusterSeed)
	applyAndDelete(t, "garden:pergola-gardenlet", objects)
}

func filterKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			out = append(out, o)
		}
	}
	return out
}

// rightReasons explain rights that no object of a bundle needs, by role and resource.
var rightReasons = map[string]string{
	"events":                                           "events about what the role does; list: causes that conditions name",
	"leases.coordination.k8s.io":                       "the lease of the role",
	"pods":                                             "causes that conditions name",
	"persistentvolumeclaims":                           "causes that conditions name",
	"replicasets.apps":                                 "causes that conditions name",
	"gardens.operator.gardener.cloud":                  "declared in Git",
	"gardens.operator.gardener.cloud/status":           "conditions of the Garden",
	"extensions.operator.gardener.cloud":               "declared in Git",
	"extensions.extensions.gardener.cloud":             "what extensions do for the Garden that names them",
	"extensions.operator.gardener.cloud/status":        "what was installed for an Extension, and who needs it",
	"managedresources.resources.gardener.cloud":        "carries the bundles of a class",
	"managedresources.resources.gardener.cloud/status": "what became of them",
	"landscapes.landscape.pergola.dev":                 "what is synced",
	"landscapes.landscape.pergola.dev/status":          "what became of it",
	"secrets":                            "credentials, generated secrets, the content of ManagedResources",
	"networkpolicies.networking.k8s.io":  "what the resource manager of a Garden leaves behind; those of namespaces",
	"endpointslices.discovery.k8s.io":    "the address of the API server in policies of namespaces",
	"clusters.extensions.gardener.cloud": "networks of Shoots in policies of namespaces",
}

// TestRightsAreMinimal finds wildcards, and resources without a bundle or a reason.
func TestRightsAreMinimal(t *testing.T) {
	for role, cluster := range map[deploy.Role]string{deploy.Operator: render.ClusterRuntime, deploy.Gardenlet: render.ClusterSeed} {
		// Kinds of bundles are listed before their definitions are deleted.
		needed, defined := map[string]bool{}, map[string]bool{}
		for _, o := range renderedObjects(t, cluster) {
			if o.GetKind() == "CustomResourceDefinition" {
				defined[o.GetName()] = true
			}
			needed[strings.ToLower(o.GetKind())+"."+o.GroupVersionKind().Group] = true
		}
		for _, o := range renderRole(t, role).Objects {
			if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
				continue
			}
			var r rbacv1.ClusterRole
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r))
			for _, rule := range r.Rules {
				assert.NotContains(t, append(append(slices.Clone(rule.Verbs), rule.Resources...), rule.APIGroups...), "*", o.GetName())
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						name, sub, _ := strings.Cut(resource, "/")
						full := strings.TrimSuffix(name+"."+group, ".")
						if sub != "" {
							full += "/" + sub
						}
						singular := strings.TrimSuffix(name, "s") + "." + group
						if strings.HasSuffix(name, "ies") {
							singular = strings.TrimSuffix(name, "ies") + "y." + group
						}
						if strings.HasSuffix(name, "sses") || strings.HasSuffix(name, "uses") {
							singular = strings.TrimSuffix(name, "es") + "." + group
						}
						allowed := rightReasons[full] != "" || defined[full] && slices.Equal(rule.Verbs, []string{"list"}) || group == "events.k8s.io" && name == "events" || sub == "" && needed[singular]
						assert.True(t, allowed, "%s: %s of %s has no reason", role, full, o.GetName())
						if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") {
							assert.Equal(t, rbacv1.GroupName, group)
						}
					}
				}
			}
		}
	}
}

// TestOperatorConverges runs the operator's part of a landscape with the rights of the chart, as
// far as possible without a kubelet.
func TestOperatorConverges(t *testing.T) {
	admin := connectAs(t, "", nil)
	in := renderRole(t, deploy.Operator)
	applyAsAdmin(t, admin, append(in.Definitions, in.Objects...)...)
	requests := &requestLog{}
	config := rest.CopyConfig(server)
	config.Impersonate.UserName = "system:serviceaccount:garden:pergola-operator"
	config.Wrap(requests.wrapTransport)
	c, err := landscape.New(loadExamples(t)[0], landscape.Options{
		Catalogue: components.FS, Connections: landscape.Connections{Configs: map[string]*rest.Config{landscape.Runtime: config}}, OnlyGarden: true,
		Clock: clock.RealClock{}, Process: landscape.ProcessIdentity{Holder: "test", Version: components.Version}, Permits: landscape.Permits{Gate: permit.DefaultGate()}, Timing: landscape.Timing{StepTimeout: 15 * time.Second},
	})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(testContext(t), 2*time.Minute)
	defer cancel()
	t.Cleanup(func() { withoutWebhooks(t, admin) })
	report, err := c.Apply(ctx)
	require.Error(t, err, "nothing runs here")
	assert.NotContains(t, err.Error(), "forbidden")
	assert.Empty(t, requests.forbiddenRequests())
	assert.Greater(t, report.Changed, 20)
}

// withoutWebhooks removes webhooks whose servers do not run here.
func withoutWebhooks(t *testing.T, admin *apply.Cluster) {
	t.Helper()
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		err := admin.Dynamic().Resource(gvr).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		assert.NoError(t, err)
	}
}

// TestOperatorListsDefinedKinds finds definitions whose kinds the operator may not list, so that
// it cannot detect foreign objects.
func TestOperatorListsDefinedKinds(t *testing.T) {
	listed := map[string]bool{}
	for _, o := range filterKind(renderRole(t, deploy.Operator).Objects, "ClusterRole") {
		var r rbacv1.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r))
		for _, rule := range r.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					listed[resource+"."+group] = listed[resource+"."+group] || slices.Contains(rule.Verbs, "list")
				}
			}
		}
	}
	for _, o := range filterKind(renderedObjects(t, render.ClusterRuntime), "CustomResourceDefinition") {
		assert.True(t, listed[o.GetName()], o.GetName())
	}
}
