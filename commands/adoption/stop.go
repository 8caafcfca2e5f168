// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
)

// StopResult describes a stop that is planned or done.
type StopResult struct {
	// Controllers are the controllers to stop, in this order.
	Controllers []Controller `json:"controllers"`
	// Approval is the id that approves stopping exactly these controllers.
	Approval string `json:"approval,omitempty"`
	// IsDone reports whether they are stopped.
	IsDone bool `json:"done"`
}

// BlockedError means that findings block the takeover.
type BlockedError struct{ Report *Report }

func (e *BlockedError) Error() string {
	lines := slices.Clone(e.Report.Problems)
	for _, f := range e.Report.ByLevel(LevelBlocks) {
		lines = append(lines, strings.TrimSpace(strings.Join(f.Objects, ", ")+" "+f.Text))
	}
	return "nothing was stopped: " + strings.Join(lines, "; ")
}

// Stop stops upstream's controllers one after the other and waits until each is inactive. It needs
// an approval, whose id a call without one returns, and fails if a finding blocks the takeover. It
// can be interrupted and repeated.
func (a *Adopter) Stop(ctx context.Context, approval string) (*StopResult, error) {
	report, err := a.Check(ctx)
	if err != nil {
		return nil, err
	}
	out := &StopResult{}
	for _, c := range report.Controllers {
		if c.MustStop {
			out.Controllers = append(out.Controllers, c)
		}
	}
	out.Approval = approvalOf(out.Controllers)
	if report.IsBlocked() {
		return out, &BlockedError{report}
	}
	if len(out.Controllers) == 0 {
		out.Approval, out.IsDone = "", true
		return out, nil
	}
	if approval != out.Approval {
		return out, nil
	}
	for _, c := range out.Controllers {
		if err := a.stopController(ctx, c); err != nil {
			return out, fmt.Errorf("stopping %s: %w", c, err)
		}
	}
	if err := a.unignoreManagedResources(ctx, clustersOf(out.Controllers)); err != nil {
		return out, err
	}
	out.IsDone = true
	return out, nil
}

// approvalOf returns the id that approves controllers.
func approvalOf(controllers []Controller) string {
	if len(controllers) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, c := range controllers {
		fmt.Fprintln(sum, c)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

func (a *Adopter) reportStep(format string, args ...any) {
	if a.OnStep != nil {
		a.OnStep(fmt.Sprintf(format, args...))
	}
}

// stopController stops one controller. It records that first.
func (a *Adopter) stopController(ctx context.Context, c Controller) error {
	cluster := a.Converger.Cluster(c.Cluster)
	live, err := readLive(ctx, cluster, deploymentRef(c.Namespace, c.Name))
	if err != nil || live == nil {
		return err
	}
	r, err := a.readRecord(ctx, c.Cluster)
	if err != nil {
		return err
	}
	known := r.entryOf(c.Namespace, c.Name)
	if known == nil {
		r.Stopped = append(r.Stopped, stoppedController{Namespace: c.Namespace, Name: c.Name, Replicas: replicasOf(live), At: a.Clock.Now().UTC()})
		known = &r.Stopped[len(r.Stopped)-1]
	} else if n := replicasOf(live); n > 0 {
		known.Replicas = n // started again in the meantime
	}
	if c.managedResource != "" {
		known.IgnoredManagedResource = c.managedResource
	}
	served, err := a.exclusiveWebhooks(ctx, c)
	if err != nil {
		return err
	}
	for _, w := range served {
		known.Webhooks = append(slices.DeleteFunc(known.Webhooks, func(k webhook) bool { return k.Cluster == w.Cluster && isSameObject(k.Object, w.Object) }), w)
	}
	if err := a.writeRecord(ctx, c.Cluster, r); err != nil {
		return err
	}
	if known.IgnoredManagedResource != "" {
		if err := a.setIgnored(ctx, cluster, known.IgnoredManagedResource, "true"); err != nil {
			return err
		}
	}
	if replicasOf(live) > 0 {
		if err := a.scaleDeployment(ctx, cluster, c.Namespace, c.Name, 0); err != nil {
			return err
		}
		a.reportStep("%s: scaled to 0", c)
	}
	if err := a.waitForPods(ctx, cluster, live); err != nil {
		return err
	}
	if err := a.waitForLease(ctx, c); err != nil {
		return err
	}
	// No server answers them now, so the API server would reject their requests.
	if err := a.removeWebhooks(ctx, known.Webhooks); err != nil {
		return err
	}
	a.reportStep("%s: stopped", c)
	return nil
}

// unignoreManagedResources removes the annotations that make resource managers ignore
// ManagedResources. Their managers are stopped, and apply would ignore the objects, too.
func (a *Adopter) unignoreManagedResources(ctx context.Context, clusters []string) error {
	for _, cluster := range clusters {
		r, err := a.readRecord(ctx, cluster)
		if err != nil {
			return err
		}
		for _, s := range r.Stopped {
			if s.IgnoredManagedResource == "" {
				continue
			}
			if err := a.setIgnored(ctx, a.Converger.Cluster(cluster), s.IgnoredManagedResource, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// existingManagedResource returns the existing ManagedResource of a Deployment, whose manager would
// restore it, or "".
func (a *Adopter) existingManagedResource(ctx context.Context, cluster string, deployment *unstructured.Unstructured) (string, error) {
	carrier := managedResourceOf(deployment)
	if carrier == "" {
		return "", nil
	}
	live, err := readLive(ctx, a.Converger.Cluster(cluster), managedResourceRef(carrier))
	if err != nil || live == nil {
		return "", err
	}
	return carrier, nil
}

func managedResourceRef(carrier string) apply.Ref {
	namespace, name, _ := strings.Cut(carrier, "/")
	return apply.Ref{APIVersion: managedResources.GroupVersion().String(), Kind: managedResources.Kind, Namespace: namespace, Name: name}
}

// managedResourceOf returns the ManagedResource in the origin annotation of an object.
func managedResourceOf(live *unstructured.Unstructured) string {
	origin := live.GetAnnotations()[resourcesv1alpha1.Origin]
	if i := strings.LastIndex(origin, ":"); i >= 0 {
		origin = origin[i+1:]
	}
	if strings.Count(origin, "/") != 1 {
		return ""
	}
	return origin
}

// setIgnored sets or removes the annotation that makes its manager ignore a ManagedResource. A
// missing ManagedResource is not an error.
func (a *Adopter) setIgnored(ctx context.Context, c *apply.Cluster, carrier string, value any) error {
	ref := managedResourceRef(carrier)
	live, err := readLive(ctx, c, ref)
	if err != nil || live == nil {
		return err
	}
	if current, has := live.GetAnnotations()[resourcesv1alpha1.Ignore]; value == nil && !has || has && current == value {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.Ignore: value}}}
	if _, err := c.MergePatch(ctx, ref, patch, conventions.AdoptionManager, ""); err != nil {
		return c.Explain(ref, "annotate", err)
	}
	return nil
}

func (a *Adopter) scaleDeployment(ctx context.Context, c *apply.Cluster, namespace, name string, replicas int64) error {
	ref := deploymentRef(namespace, name)
	if _, err := c.MergePatch(ctx, ref, map[string]any{"spec": map[string]any{"replicas": replicas}}, conventions.AdoptionManager, ""); err != nil {
		return c.Explain(ref, "scale", err)
	}
	return nil
}

func clientOf(c *apply.Cluster) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return client, nil
}
