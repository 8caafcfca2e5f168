// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/printable"
)

// Controller is a program of upstream that runs in the landscape.
type Controller struct {
	Role      string `json:"role"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Image     string `json:"image"`
	Replicas  int64  `json:"replicas"`
	// MustStop reports whether it is stopped for the takeover; Reason has the reason in both cases.
	MustStop bool   `json:"stops"`
	Reason   string `json:"why"`
	// RestoredBy is a tool that reverts manual changes of it, such as Flux.
	RestoredBy string `json:"by,omitempty"`

	lease *leaseRef
	// managedResource is the ManagedResource that deploys it, NAMESPACE/NAME, or "".
	managedResource string
}

func (c Controller) String() string {
	return fmt.Sprintf("%s: Deployment %s/%s", c.Cluster, c.Namespace, c.Name)
}

// leaseRef identifies the lease of the active instance.
type leaseRef struct{ cluster, namespace, name string }

// role is a controller of upstream and where it may run. roles are in stop order: a controller that
// would restart another one is stopped first.
type role struct {
	name, deployment string
	isOnSeeds        bool
	// isRendered means that Pergola renders a Deployment of the same name, so it is stopped only if
	// the live one runs another program.
	isRendered bool
	lease      leaseRef
}

const operatorRole, gardenletRole = "gardener-operator", "gardenlet"

// resourceManager is the name in the runtime cluster and on seeds.
const resourceManager = "gardener-resource-manager"

// sameCluster stands for the cluster of the controller.
const sameCluster = ""

var roles = []role{
	{name: operatorRole, deployment: "gardener-operator", lease: leaseRef{sameCluster, "garden", "gardener-operator-leader-election"}},
	{name: gardenletRole, deployment: "gardenlet", isOnSeeds: true, lease: leaseRef{sameCluster, "garden", "gardenlet-leader-election"}},
	{name: "gardener-controller-manager", deployment: "gardener-controller-manager", isRendered: true, lease: leaseRef{landscape.Virtual, "kube-system", "gardener-controller-manager-leader-election"}},
	{name: "gardener-scheduler", deployment: "gardener-scheduler", isRendered: true, lease: leaseRef{landscape.Virtual, "kube-system", "gardener-scheduler-leader-election"}},
	{name: "gardener-resource-manager of a seed", deployment: resourceManager, isOnSeeds: true, isRendered: true, lease: leaseRef{sameCluster, "garden", resourceManager}},
	{name: "gardener-resource-manager of the virtual garden", deployment: "virtual-garden-gardener-resource-manager", isRendered: true, lease: leaseRef{sameCluster, "garden", "virtual-garden-gardener-resource-manager"}},
	{name: "gardener-resource-manager of the runtime cluster", deployment: resourceManager, isRendered: true, lease: leaseRef{sameCluster, "garden", resourceManager}},
}

// deploymentTools are the deployment tools with the labels or annotations that they set.
var deploymentTools = []struct{ mark, name string }{
	{"kustomize.toolkit.fluxcd.io/name", "Flux, Kustomization"}, {"helm.toolkit.fluxcd.io/name", "Flux, HelmRelease"}, {"argocd.argoproj.io/instance", "Argo CD, Application"}, {"argocd.argoproj.io/tracking-id", "Argo CD, Application"},
}

// controllers returns the running controllers in stop order. The landscape must be rendered.
func (a *Adopter) controllers(ctx context.Context) ([]Controller, error) {
	seeds, err := a.seeds(ctx)
	if err != nil {
		return nil, err
	}
	rendered := a.deploymentImages()
	var out []Controller
	for _, role := range roles {
		clusters := []string{landscape.Runtime}
		if role.isOnSeeds {
			clusters = seeds
		}
		for _, name := range clusters {
			if role.isOnSeeds && role.isRendered && a.isRuntime(name) {
				continue // listed for the runtime cluster
			}
			live, err := readLive(ctx, a.Converger.Cluster(name), deploymentRef("garden", role.deployment))
			if err != nil {
				return nil, err
			}
			if live == nil {
				continue
			}
			c := Controller{Role: role.name, Cluster: name, Namespace: live.GetNamespace(), Name: live.GetName(), Image: imageOf(live), Replicas: replicasOf(live), RestoredBy: restoringTool(live)}
			lease := role.lease
			if lease.cluster == sameCluster {
				lease.cluster = name
			}
			c.lease = &lease
			c.setMustStop(role, live, rendered[name+" "+c.Namespace+"/"+c.Name])
			if c.managedResource, err = a.existingManagedResource(ctx, name, live); err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	skipManagedControllers(out)
	return out, nil
}

// skipManagedControllers skips controllers that a running resource manager would restore. The Lease
// separates the old and the new program during the update.
func skipManagedControllers(found []Controller) {
	for i := range found {
		c := &found[i]
		manages := slices.ContainsFunc(found, func(m Controller) bool { return m.Cluster == c.Cluster && m.Name == resourceManager && m.MustStop })
		if c.MustStop && c.managedResource != "" && !manages {
			c.MustStop, c.Reason = false, "the apply replaces the program of its Deployment: the Lease prevents parallel work, and the running resource manager would restore a stopped Deployment"
		}
	}
}

func (c *Controller) setMustStop(role role, live *unstructured.Unstructured, rendered string) {
	switch {
	case isAppliedByPergola(live):
		c.Reason = "Pergola has applied it already"
	case !role.isRendered:
		c.MustStop, c.Reason = true, "Pergola does its work"
	case rendered == "":
		c.Reason = "the landscape renders no Deployment of this name: it stays"
	case imageRepository(rendered) == imageRepository(c.Image):
		c.Reason = "the landscape renders the same program: it continues to run, and restarts only if its Deployment differs"
	default:
		c.MustStop, c.Reason = true, "its Deployment gets another program, "+rendered+", which must not run at the same time"
	}
}

func deploymentRef(namespace, name string) apply.Ref {
	return apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
}

func imageOf(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return image
}

func replicasOf(deployment *unstructured.Unstructured) int64 {
	n, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return n
}

// imageRepository returns an image reference without tag and digest.
func imageRepository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}

// isAppliedByPergola reports whether Pergola applies an object.
func isAppliedByPergola(o *unstructured.Unstructured) bool {
	for _, m := range o.GetManagedFields() {
		if m.Operation == "Apply" && (m.Manager == "pergola" || strings.HasPrefix(m.Manager, "pergola/") || m.Manager == landscape.FieldManager) {
			return true
		}
	}
	return false
}

func restoringTool(o *unstructured.Unstructured) string {
	for _, tool := range deploymentTools {
		if name := cmp.Or(o.GetLabels()[tool.mark], o.GetAnnotations()[tool.mark]); name != "" {
			return tool.name + " " + name
		}
	}
	return ""
}

// deploymentImages returns the images of Deployments by cluster, namespace and name.
func (a *Adopter) deploymentImages() map[string]string {
	out := map[string]string{}
	for _, place := range a.Converger.RenderedObjects() {
		for _, o := range place.Bundle.Objects {
			if o.GetKind() == "Deployment" {
				out[place.Cluster+" "+o.GetNamespace()+"/"+o.GetName()] = imageOf(o.Unstructured)
			}
		}
	}
	return out
}

func (a *Adopter) isRuntime(seed string) bool {
	return a.Converger.Cluster(seed).RESTConfig().Host == a.Converger.Cluster(landscape.Runtime).RESTConfig().Host
}

var (
	managedSeeds = schema.GroupVersionKind{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Kind: "ManagedSeed"}
	seedKind     = schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Seed"}
	shootKind    = schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"}
)

// seeds returns the seeds of the landscape, hosts first: the gardenlet of the host seed restores
// the gardenlet of a managed seed.
func (a *Adopter) seeds(ctx context.Context) ([]string, error) {
	names := a.Converger.SeedNames()
	virtual := a.Converger.Cluster(landscape.Virtual)
	if virtual == nil || len(names) < 2 {
		return names, nil
	}
	managed, err := listObjects(ctx, virtual, managedSeeds, "garden")
	if err != nil || len(managed) == 0 {
		return names, err
	}
	shoots, err := listObjects(ctx, virtual, shootKind, "garden")
	if err != nil {
		return nil, err
	}
	hostOf := map[string]string{}
	for i := range managed {
		for j := range shoots {
			if shoots[j].GetName() == stringField(&managed[i], "spec", "shoot", "name") {
				hostOf[managed[i].GetName()] = stringField(&shoots[j], "spec", "seedName")
			}
		}
	}
	depth := func(seed string) int {
		n := 0
		for host, is := hostOf[seed]; is && n < len(names); host, is = hostOf[host] {
			n++
		}
		return n
	}
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(depth(x), depth(y)) })
	return names, nil
}

// checkControllers reports the running controllers and what happens to each.
func (a *Adopter) checkControllers(ctx context.Context, r *Report) error {
	found, err := a.controllers(ctx)
	if err != nil {
		return err
	}
	r.Controllers = found
	if r.HasStopped, err = a.isStopped(ctx, found); err != nil {
		return err
	}
	for _, c := range found {
		f := Finding{Level: LevelNoAction, Area: AreaControllers, Cluster: c.Cluster, Objects: []string{"Deployment " + c.Namespace + "/" + c.Name}, Text: fmt.Sprintf("%s, %s: %s", c.Role, printable.WithCount(int(c.Replicas), "replica"), c.Reason)}
		switch {
		case c.MustStop && c.Replicas > 0 && c.RestoredBy != "":
			f.Level, f.Text, f.Advice = LevelBlocks, f.Text+"; "+c.RestoredBy+" restores it", "suspend that first"
		case c.MustStop && c.Replicas > 0:
			f.Level, f.Advice = LevelChanges, "pergola adopt --stop stops it"
		case c.MustStop:
			f.Text += "; it is stopped"
		}
		r.add(f)
	}
	return a.checkSeeds(ctx, r, found)
}

// checkSeeds reports which live seeds are stopped and which stay with upstream.
func (a *Adopter) checkSeeds(ctx context.Context, r *Report, found []Controller) error {
	virtual := a.Converger.Cluster(landscape.Virtual)
	if virtual == nil {
		return nil
	}
	live, err := listObjects(ctx, virtual, seedKind, "")
	if err != nil || len(live) == 0 {
		return err
	}
	shoots, err := listObjects(ctx, virtual, shootKind, "")
	if err != nil {
		return err
	}
	names := a.Converger.SeedNames()
	for i := range live {
		name, on := live[i].GetName(), 0
		for j := range shoots {
			if stringField(&shoots[j], "spec", "seedName") == name {
				on++
			}
		}
		stops := slices.ContainsFunc(found, func(c Controller) bool { return c.Cluster == name && c.Role == gardenletRole && c.MustStop })
		switch object := []string{"Seed " + name}; {
		case !slices.Contains(names, name):
			r.add(Finding{Level: LevelNoAction, Area: AreaControllers, Cluster: landscape.Virtual, Objects: object, Text: fmt.Sprintf("the landscape does not declare it: its gardenlet continues to run, with %s", printable.WithCount(on, "Shoot"))})
		case stops && on > 0:
			r.add(Finding{Level: LevelBlocks, Area: AreaControllers, Cluster: landscape.Virtual, Objects: object, Text: fmt.Sprintf("%s run on it, and this version of Pergola does not reconcile nodes and system components of Shoots (docs/reference/compatibility.md)", printable.WithCount(on, "Shoot")),
				Advice: "leave the Seed out of the landscape: its gardenlet continues to run with a Garden that Pergola reconciles"})
		}
	}
	return nil
}
