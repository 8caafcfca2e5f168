// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/components"
)

// TestEveryComponentRenders: every component of the catalogue is enabled in some variant and
// renders objects.
func TestEveryComponentRenders(t *testing.T) {
	on := map[string]bool{}
	eachVariant(t, func(t *testing.T, v variantResult) {
		for _, b := range v.bundles() {
			on[b.Component] = true
			assert.NotEmpty(t, b.Objects, b.ID())
		}
	})
	for _, kind := range []string{"garden", "seed", "shoot"} {
		dirs, err := componentDirs(components.FS, kind)
		require.NoError(t, err)
		require.NotEmpty(t, dirs)
		for _, dir := range dirs {
			assert.True(t, on[dir], "%s is on in no variant", dir)
		}
	}
}

// TestFlowsCoverTheCatalogue: flows contain every bundle of their owner, and no unknown bundle.
func TestFlowsCoverTheCatalogue(t *testing.T) {
	for _, operation := range []string{"reconcile", "delete"} {
		named, rendered := map[string]bool{}, map[string]bool{"shoot/" + BundleReferences: true}
		t.Run(operation, func(t *testing.T) {
			eachVariant(t, func(t *testing.T, v variantResult) {
				for i, in := range v.inputs {
					flow, err := LoadFlow(components.FS, operation, in)
					require.NoError(t, err)
					require.NoError(t, flow.CheckCoverage(v.results[i].Bundles))
					for _, n := range flow.Nodes {
						for _, b := range n.Bundles {
							if b == OtherBundles {
								continue
							}
							named[in.Owner.Kind+"/"+b] = true
							if n.If {
								continue
							}
							assert.False(t, slices.ContainsFunc(v.results[i].Bundles, func(r Bundle) bool { return r.Name == b }),
								"node %s is switched off, so nothing would apply bundle %s", n.ID, b)
						}
					}
					for _, b := range v.results[i].Bundles {
						rendered[in.Owner.Kind+"/"+b.Name] = true
					}
				}
			})
			for _, name := range sortedKeys(named) {
				assert.True(t, rendered[name], "the flow names bundle %s, which no variant renders", name)
			}
		})
	}
}

// TestWebhooksFollowTheirServers: webhooks that fail closed are applied after their servers are
// rolled out with the certificate, so that a CA can rotate. They are removed before their servers.
func TestWebhooksFollowTheirServers(t *testing.T) {
	nodeOf := func(flow Flow, bundle string) FlowNode {
		i := slices.IndexFunc(flow.Nodes, func(n FlowNode) bool { return slices.Contains(n.Bundles, bundle) })
		require.GreaterOrEqual(t, i, 0, bundle)
		return flow.Nodes[i]
	}
	seen := map[string]bool{}
	eachVariant(t, func(t *testing.T, v variantResult) {
		for i, in := range v.inputs {
			for _, b := range v.results[i].Bundles {
				if b.Delivery.ServedBy == "" {
					continue
				}
				seen[b.Name] = true
				server := slices.IndexFunc(v.results[i].Bundles, func(other Bundle) bool {
					return slices.ContainsFunc(other.Objects, func(o Object) bool {
						return o.GetKind() == "Deployment" && o.GetName() == b.Delivery.ServedBy && o.GetNamespace() == in.Owner.ControlPlaneNamespace
					})
				})
				require.GreaterOrEqual(t, server, 0, "no bundle has Deployment %s", b.Delivery.ServedBy)
				carrier := v.results[i].Bundles[server].Name
				reconcile, err := LoadFlow(components.FS, "reconcile", in)
				require.NoError(t, err)
				assert.Equal(t, "rolledOut", nodeOf(reconcile, b.Name).After[nodeOf(reconcile, carrier).ID], b.Name)
				end, err := LoadFlow(components.FS, "delete", in)
				require.NoError(t, err)
				assert.Equal(t, "healthy", nodeOf(end, carrier).After[nodeOf(end, b.Name).ID], b.Name)
			}
		}
	})
	assert.Equal(t, map[string]bool{"gardener-admission-controller-webhooks": true, "gardener-resource-manager-webhooks": true}, seen)
}

// TestUnservedWebhooksAreScoped: webhooks that fail closed reject requests while their server is
// down. Without servedBy, they may only match kinds of their own bundle or labels of their server.
// Otherwise a server that does not start could block all writes, even its own repair.
func TestUnservedWebhooksAreScoped(t *testing.T) {
	seen := map[string]bool{}
	eachVariant(t, func(t *testing.T, v variantResult) {
		for _, b := range v.bundles() {
			own := map[string]bool{}
			for _, o := range b.Objects {
				if o.GetKind() == "CustomResourceDefinition" {
					own[fmt.Sprintf("%v/%v", nested(o.Object, "spec", "group"), nested(o.Object, "spec", "names", "plural"))] = true
				}
			}
			for _, o := range b.Objects {
				if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") || b.Delivery.ServedBy != "" {
					continue
				}
				for _, webhook := range mapsIn(o.Object["webhooks"]) {
					if webhook["failurePolicy"] == "Ignore" {
						continue
					}
					seen[b.Name] = true
					if nested(webhook, "objectSelector", "matchLabels") != nil {
						continue
					}
					for _, rule := range mapsIn(webhook["rules"]) {
						for _, group := range stringsIn(rule["apiGroups"]) {
							for _, resource := range stringsIn(rule["resources"]) {
								if group+"/"+resource == "apps/statefulsets/scale" && b.Name == "etcd-druid" {
									// As upstream: labels of a StatefulSet do not apply to its
									// scale, and only scaling waits.
									continue
								}
								assert.True(t, own[group+"/"+resource], "%s: webhook %v refuses %s of %q while nobody answers: its bundle needs servedBy", describeObject(b, o), webhook["name"], resource, group)
							}
						}
					}
				}
			}
		}
	})
	assert.Equal(t, map[string]bool{"etcd-druid": true, "terminal-virtual": true}, seen)
}

// TestImagesComeFromTheVector: containers use images of the vector that their component lists, and
// the vector has no unused image.
func TestImagesComeFromTheVector(t *testing.T) {
	vector, err := ReadImageVector(components.FS)
	require.NoError(t, err)
	used := map[string]bool{}
	eachVariant(t, func(t *testing.T, v variantResult) {
		for i, in := range v.inputs {
			images, err := imagesFor(in, Options{Catalogue: components.FS})
			require.NoError(t, err)
			listed := map[string][]string{}
			for _, c := range v.results[i].Components {
				listed[c.Path] = c.Images
				for _, name := range c.Images {
					used[name] = true
				}
			}
			for _, b := range v.results[i].Bundles {
				for _, o := range b.Objects {
					eachContainer(o.Unstructured, func(container map[string]any) {
						image, _ := container["image"].(string)
						if image == "auto" {
							return // istio's injector sets it
						}
						known := slices.ContainsFunc(listed[b.Component], func(name string) bool { return images[name] == image })
						assert.True(t, known, "%s: container %v: image %q is not one that component.images lists", describeObject(b, o), container["name"], image)
					})
				}
			}
		}
	})
	for _, image := range vector {
		assert.True(t, used[image.Name], "image %s of the vector is used by no component", image.Name)
	}
}

// TestGardenersImagesHaveOneVersion: images of Gardener have the version in the compatibility
// table.
func TestGardenersImagesHaveOneVersion(t *testing.T) {
	vector, err := ReadImageVector(components.FS)
	require.NoError(t, err)
	tags := map[string]string{}
	for _, image := range vector {
		tags[image.Name] = image.Tag
	}
	version := tags["gardener-apiserver"]
	require.NotEmpty(t, version)
	for _, part := range []string{"admission-controller", "controller-manager", "scheduler", "resource-manager", "node-agent"} {
		assert.Equal(t, version, tags["gardener-"+part], part)
	}
	page, err := os.ReadFile("../docs/reference/compatibility.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "\n| "+components.Version+" | "+version+" | ")
}

func eachContainer(obj *unstructured.Unstructured, visit func(map[string]any)) {
	for _, template := range podTemplates(obj) {
		spec, _ := template["spec"].(map[string]any)
		for _, field := range []string{"initContainers", "containers"} {
			for _, container := range mapsIn(spec[field]) {
				visit(container)
			}
		}
	}
}

// TestWorkloadReferences finds faults that the API server would report late or never.
func TestWorkloadReferences(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variantResult) {
		bundles := v.bundles()
		classes, accounts := map[string]bool{}, map[string]bool{}
		for _, b := range bundles {
			for _, o := range b.Objects {
				switch o.GetKind() {
				case "PriorityClass":
					classes[b.Cluster+"/"+o.GetName()] = true
				case "ServiceAccount":
					accounts[b.Cluster+"/"+o.GetNamespace()+"/"+o.GetName()] = true
				}
			}
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				for _, template := range podTemplates(o.Unstructured) {
					checkPods(t, b, o, template, classes, accounts)
				}
			}
		}
	})
}

func checkPods(t *testing.T, b Bundle, o Object, template map[string]any, classes, accounts map[string]bool) {
	t.Helper()
	spec, _ := template["spec"].(map[string]any)
	volumes := map[string]bool{}
	for _, volume := range mapsIn(spec["volumes"]) {
		name, _ := volume["name"].(string)
		assert.False(t, volumes[name], "%s: volume %s is there twice", describeObject(b, o), name)
		volumes[name] = true
	}
	for _, claim := range mapsIn(nested(o.Object, "spec", "volumeClaimTemplates")) {
		volumes[nested(claim, "metadata", "name").(string)] = true
	}
	mounted := map[string]bool{}
	eachContainer(o.Unstructured, func(container map[string]any) {
		paths := map[string]bool{}
		for _, mount := range mapsIn(container["volumeMounts"]) {
			name, _ := mount["name"].(string)
			path, _ := mount["mountPath"].(string)
			assert.True(t, volumes[name], "%s: container %v mounts %s, which is no volume", describeObject(b, o), container["name"], name)
			assert.False(t, paths[path], "%s: container %v mounts two volumes at %s", describeObject(b, o), container["name"], path)
			mounted[name], paths[path] = true, true
		}
		for _, port := range mapsIn(container["ports"]) {
			name, _ := port["name"].(string)
			assert.LessOrEqual(t, len(name), 15, "%s: port name %s", describeObject(b, o), name)
		}
	})
	for name := range volumes {
		assert.True(t, mounted[name], "%s: volume %s is mounted nowhere", describeObject(b, o), name)
	}
	selector, _ := nested(o.Object, "spec", "selector", "matchLabels").(map[string]any)
	labels, _ := nested(template, "metadata", "labels").(map[string]any)
	for key, value := range selector {
		assert.Equal(t, value, labels[key], "%s: the selector does not match the pods in label %s", describeObject(b, o), key)
	}
	if class, _ := spec["priorityClassName"].(string); class != "" && !strings.HasPrefix(class, "system-") {
		assert.True(t, classes[b.Cluster+"/"+class], "%s: no component of cluster %s has PriorityClass %s", describeObject(b, o), b.Cluster, class)
	}
	if account, _ := spec["serviceAccountName"].(string); account != "" && account != "default" {
		assert.True(t, accounts[b.Cluster+"/"+o.GetNamespace()+"/"+account], "%s: no ServiceAccount %s in its namespace", describeObject(b, o), account)
	}
}

func nested(m map[string]any, fields ...string) any {
	v, _, _ := nestedField(m, fields...)
	return v
}

// TestReferencesAreRendered: ConfigMaps and Secrets of pods are rendered for their namespace,
// generated, or listed here with their source.
func TestReferencesAreRendered(t *testing.T) {
	used := map[string]bool{}
	eachVariant(t, func(t *testing.T, v variantResult) {
		for i := range v.inputs {
			rendered, generated, declared := map[string]bool{}, map[string]bool{}, map[string]bool{}
			if v.inputs[i].Owner.Kind == "garden" {
				collectReferences(v.inputs[i].Objects["garden"]["spec"], declared)
			}
			for _, c := range v.results[i].Components {
				for name := range c.Secrets {
					s := symbolicSecret(name)
					generated[s.Name], generated[s.Bundle] = true, true
				}
			}
			for _, b := range v.results[i].Bundles {
				for _, o := range b.Objects {
					rendered[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = true
				}
			}
			for _, b := range v.results[i].Bundles {
				for _, o := range b.Objects {
					eachReference(o.Unstructured, func(kind, name string) string {
						if !rendered[kind+"/"+o.GetNamespace()+"/"+name] && !(kind == "Secret" && generated[name]) && !declared[name] {
							used[kind+"/"+name] = true
							assert.Contains(t, externalReferences, kind+"/"+name, "%s: refers to %s %s, which nothing renders or generates", describeObject(b, o), kind, name)
						}
						return name
					})
				}
			}
		}
	})
	for _, reference := range sortedKeys(externalReferences) {
		assert.True(t, used[reference], "no pod uses %s any more", reference)
	}
}

// collectReferences collects the names of Secrets and ConfigMaps that a Garden refers to; users
// create them in the namespace of its control plane.
func collectReferences(value any, names map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for field, v := range value {
			if name, is := v.(string); is && (field == "configMapName" || strings.HasSuffix(strings.ToLower(field), "secretname")) {
				names[name] = true
			}
			if ref, is := v.(map[string]any); is && strings.HasSuffix(field, "Ref") {
				name, _ := ref["name"].(string)
				names[name] = true
			}
			collectReferences(v, names)
		}
	case []any:
		for _, v := range value {
			collectReferences(v, names)
		}
	}
}

// externalReferences are Secrets and ConfigMaps of pods that are neither rendered nor generated,
// with their source.
var externalReferences = map[string]string{
	"ConfigMap/kube-root-ca.crt":           "kube-controller-manager publishes it in every namespace",
	"ConfigMap/istio-ca-root-cert":         "istiod writes it into every namespace",
	"ConfigMap/istio":                      "optional: the mesh configuration beside a gateway",
	"Secret/cacerts":                       "optional: a CA for istiod to sign with",
	"Secret/istio-kubeconfig":              "optional: another cluster for istiod",
	"Secret/istiod-tls":                    "optional: a serving certificate for istiod",
	"Secret/istio-ingressgateway-certs":    "optional: certificates for the gateway",
	"Secret/istio-ingressgateway-ca-certs": "optional: certificates for the gateway",
}

// TestMarksAreRemoved: rendered objects have no marks of the renderer and no status.
func TestMarksAreRemoved(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variantResult) {
		for _, b := range v.bundles() {
			for _, o := range b.Objects {
				raw, err := json.Marshal(o.Object)
				require.NoError(t, err)
				assert.NotContains(t, string(raw), "render.pergola.dev/", describeObject(b, o))
				assert.NotContains(t, string(raw), "config.kubernetes.io/origin", describeObject(b, o))
				assert.NotContains(t, o.Object, "status", describeObject(b, o))
			}
		}
	})
}
