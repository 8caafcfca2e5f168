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

// Stopping describes a stop that is planned or done.
type Stopping struct {
	// Controllers to stop, in this order.
	Controllers []Controller `json:"controllers"`
	// Approval is the id that approves stopping exactly these controllers.
	Approval string `json:"approval,omitempty"`
	// Done reports whether they are stopped.
	Done bool `json:"done"`
}

// BlockedError means that findings block the takeover.
type BlockedError struct{ Report *Report }

func (e *BlockedError) Error() string {
	lines := slices.Clone(e.Report.Problems)
	for _, f := range e.Report.Of(Blocks) {
		lines = append(lines, strings.TrimSpace(strings.Join(f.Objects, ", ")+" "+f.Text))
	}
	return "nothing was stopped: " + strings.Join(lines, "; ")
}

// Stop stops upstream's controllers one after the other and waits until each is inactive. It needs
// an approval, whose id a call without one returns, and fails if a finding blocks the takeover. It
// can be interrupted and repeated.
func (a *Adopter) Stop(ctx context.Context, approval string) (*Stopping, error) {
	report, err := a.Check(ctx)
	if err != nil {
		return nil, err
	}
	out := &Stopping{}
	for _, c := range report.Controllers {
		if c.Stops {
			out.Controllers = append(out.Controllers, c)
		}
	}
	out.Approval = approvalOf(out.Controllers)
	if report.Blocked() {
		return out, &BlockedError{report}
	}
	if len(out.Controllers) == 0 {
		out.Approval, out.Done = "", true
		return out, nil
	}
	if approval != out.Approval {
		return out, nil
	}
	for _, c := range out.Controllers {
		if err := a.stop(ctx, c); err != nil {
			return out, fmt.Errorf("stopping %s: %w", c, err)
		}
	}
	if err := a.heed(ctx, clustersOf(out.Controllers)); err != nil {
		return out, err
	}
	out.Done = true
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

func (a *Adopter) tell(format string, args ...any) {
	if a.OnStep != nil {
		a.OnStep(fmt.Sprintf(format, args...))
	}
}

// stop stops one controller. It records that first.
func (a *Adopter) stop(ctx context.Context, c Controller) error {
	cluster := a.Converger.Cluster(c.Cluster)
	live, err := liveOf(ctx, cluster, deploymentRef(c.Namespace, c.Name))
	if err != nil || live == nil {
		return err
	}
	r, err := a.readRecord(ctx, c.Cluster)
	if err != nil {
		return err
	}
	known := r.of(c.Namespace, c.Name)
	if known == nil {
		r.Stopped = append(r.Stopped, stopped{Namespace: c.Namespace, Name: c.Name, Replicas: replicasOf(live), At: a.Clock.Now().UTC()})
		known = &r.Stopped[len(r.Stopped)-1]
	} else if n := replicasOf(live); n > 0 {
		known.Replicas = n // started again in the meantime
	}
	if c.carrier != "" {
		known.Ignored = c.carrier
	}
	served, err := a.servedBy(ctx, c)
	if err != nil {
		return err
	}
	for _, w := range served {
		known.Webhooks = append(slices.DeleteFunc(known.Webhooks, func(k webhook) bool { return k.Cluster == w.Cluster && sameObject(k.Object, w.Object) }), w)
	}
	if err := a.writeRecord(ctx, c.Cluster, r); err != nil {
		return err
	}
	if known.Ignored != "" {
		if err := a.ignore(ctx, cluster, known.Ignored, "true"); err != nil {
			return err
		}
	}
	if replicasOf(live) > 0 {
		if err := a.scale(ctx, cluster, c.Namespace, c.Name, 0); err != nil {
			return err
		}
		a.tell("%s: scaled to 0", c)
	}
	if err := a.awaitPods(ctx, cluster, live); err != nil {
		return err
	}
	if err := a.awaitLease(ctx, c); err != nil {
		return err
	}
	// Nothing answers them any more, so the API server would reject their requests.
	if err := a.removeWebhooks(ctx, known.Webhooks); err != nil {
		return err
	}
	a.tell("%s: stopped", c)
	return nil
}

// heed removes the annotations that make resource managers ignore ManagedResources. Their managers
// are stopped, and apply would ignore the objects, too.
func (a *Adopter) heed(ctx context.Context, clusters []string) error {
	for _, cluster := range clusters {
		r, err := a.readRecord(ctx, cluster)
		if err != nil {
			return err
		}
		for _, s := range r.Stopped {
			if s.Ignored == "" {
				continue
			}
			if err := a.ignore(ctx, a.Converger.Cluster(cluster), s.Ignored, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// carrierIn returns the existing ManagedResource of a Deployment, whose manager would restore it,
// or "".
func (a *Adopter) carrierIn(ctx context.Context, cluster string, deployment *unstructured.Unstructured) (string, error) {
	carrier := carrierOf(deployment)
	if carrier == "" {
		return "", nil
	}
	live, err := liveOf(ctx, a.Converger.Cluster(cluster), managedResourceRef(carrier))
	if err != nil || live == nil {
		return "", err
	}
	return carrier, nil
}

func managedResourceRef(carrier string) apply.Ref {
	namespace, name, _ := strings.Cut(carrier, "/")
	return apply.Ref{APIVersion: managedResources.GroupVersion().String(), Kind: managedResources.Kind, Namespace: namespace, Name: name}
}

// carrierOf returns the ManagedResource in the origin annotation of an object.
func carrierOf(live *unstructured.Unstructured) string {
	origin := live.GetAnnotations()[resourcesv1alpha1.Origin]
	if i := strings.LastIndex(origin, ":"); i >= 0 {
		origin = origin[i+1:]
	}
	if strings.Count(origin, "/") != 1 {
		return ""
	}
	return origin
}

// ignore sets or removes the annotation that makes its manager ignore a ManagedResource. A missing
// ManagedResource is not an error.
func (a *Adopter) ignore(ctx context.Context, c *apply.Cluster, carrier string, value any) error {
	ref := managedResourceRef(carrier)
	live, err := liveOf(ctx, c, ref)
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

func (a *Adopter) scale(ctx context.Context, c *apply.Cluster, namespace, name string, replicas int64) error {
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
