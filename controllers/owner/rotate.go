package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/render"
)

// mostPasses limits the passes of the flow in one reconciliation: a rotation of the encryption key
// that completes by itself takes three.
const mostPasses = 4

// rotate does the work of rotations other than new secrets, once everything was applied with these,
// and records the progress. It returns true if the flow has to run again.
func (r *run) rotate(ctx context.Context, result render.Result) (again bool, err error) {
	o := r.owner
	c := o.now().rotation
	if !o.rotates() || o.Target == nil && !c.UnderWay() {
		return false, nil
	}
	key := c.Phase(rotation.ETCDEncryptionKey)
	declared := declaredAtRest(o.Input.Objects[Garden])
	changed := !rotation.SameAtRest(c.EncryptionAtRest, declared)
	if c.UnderWay() || changed {
		if err := r.formerPodsGone(ctx); err != nil {
			return false, err
		}
	}
	if further, err := r.nextRound(ctx, c); further || err != nil {
		return further, err
	}
	if c.Phase(rotation.ServiceAccountKey) == gardencorev1beta1.RotationPreparing {
		if err := r.renewTokens(ctx); err != nil {
			return false, err
		}
	}
	if err := r.renewOnSeeds(ctx, c.SeedOperations()); err != nil {
		return false, err
	}
	if c.NewPasswords() {
		if err := r.handOut(ctx, result); err != nil {
			return false, err
		}
	}
	if changed || key == gardencorev1beta1.RotationPreparing {
		requests, err := requestsOf(o, result)
		if err != nil {
			return false, err
		}
		if err := r.rewrite(ctx, rotation.EncryptedResources(requests)); err != nil {
			return false, err
		}
		if err := r.snapshot(ctx); err != nil {
			return false, err
		}
	}
	before := c.State
	after, again := before.Finish(metav1.NewTime(r.reconciler.Clock.Now()))
	if changed {
		// Resources that are no longer encrypted stay readable while the status has them; the next
		// pass removes them from the configuration.
		again = again || c.EncryptionAtRest != nil
		after.EncryptionAtRest = &declared
	}
	for annotation, reached := range map[string]bool{annotationPopulated: c.Populated, annotationResigned: c.Resigned, annotationSnapshotted: changed || key == gardencorev1beta1.RotationPreparing} {
		if reached {
			if err := o.mark(ctx, annotation, false); err != nil {
				return false, err
			}
		}
	}
	if fields := rotation.Patch(before, after); fields != nil {
		if err := r.status.write(ctx, fields); err != nil {
			return false, err
		}
	}
	return again, r.reconciler.noteState(ctx, o, after)
}

// nextRound records the progress of all API servers after a round. It returns true if they have to
// restart again.
func (r *run) nextRound(ctx context.Context, c credentials) (bool, error) {
	o, next := r.owner, c
	if c.Phase(rotation.ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing && !c.Populated {
		if err := o.mark(ctx, annotationPopulated, true); err != nil {
			return false, err
		}
		next.Populated = true
	}
	if c.Phase(rotation.CertificateAuthorities) == gardencorev1beta1.RotationCompleting && !c.Resigned {
		if err := o.mark(ctx, annotationResigned, true); err != nil {
			return false, err
		}
		next.Resigned = true
	}
	o.note(func(s *State) { s.rotation = next })
	return next.Progress != c.Progress, nil
}

// formerPodsGone waits until all pods of API servers from before the last rollout have ended: they
// still serve open connections with the old keys.
func (r *run) formerPodsGone(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	judge := r.reconciler.judgeOf(r.owner.Local)
	judge.OldPods = true
	there, err := r.owner.serving(limited, annotationPopulated)
	if err != nil {
		return err
	}
	for name := range there {
		ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: r.owner.ControlPlane(), Name: name}
		for {
			v, err := judge.One(limited, ref)
			if err == nil && !v.Progressing {
				break
			}
			if !r.pause(limited, renewInterval) {
				return errors.Join(ctx.Err(), err, fmt.Errorf("%s: %s", ref, v.Message))
			}
		}
	}
	return nil
}

// pause returns false if the context ends first.
func (r *run) pause(ctx context.Context, d time.Duration) bool {
	timer := r.reconciler.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// rewrite rewrites all encrypted objects.
func (r *run) rewrite(ctx context.Context, resources []string) error {
	o := r.owner
	if o.Target == nil {
		return fmt.Errorf("%s has no access to its API server: what is encrypted in etcd cannot be written anew", o)
	}
	client, err := metadata.NewForConfig(o.Target.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(o.Target.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, served)
	if err != nil {
		return o.Target.Explain(apply.Ref{}, "discover", err)
	}
	r.tell("re-encrypt", "objects are written anew with the encryption that is declared")
	w := rotation.Rewriter{Client: client, Mapper: restmapper.NewDiscoveryRESTMapper(groups), Progress: func(n int) {
		r.tell("re-encrypt", fmt.Sprintf("%d objects are written anew", n))
	}}
	if _, err := w.Rewrite(ctx, resources); err != nil {
		return o.Target.Explain(apply.Ref{}, "write anew what is encrypted", err)
	}
	return nil
}

// beginRound starts the next round of rotations.
func (r *run) beginRound() {
	o := r.owner
	if !o.rotates() {
		return
	}
	c := o.now().rotation
	r.round = r.round.Next(c.State, c.Progress, !rotation.SameAtRest(c.EncryptionAtRest, declaredAtRest(o.Input.Objects[Garden])))
}

// tell reports progress between the steps of the flow.
func (r *run) tell(step, message string) {
	r.event(flow.Event{ID: step, State: flow.Running, Note: true, Message: message, At: r.reconciler.Clock.Now(), Progress: flow.Progress{Percent: 99}})
}

const (
	// renewTime is the time limit for renewing tokens after the request.
	renewTime = 5 * time.Minute
	// renewInterval is the time between checks of the tokens.
	renewInterval = time.Second
)

// renewTokens has the tokens of the control plane signed by the current key. Their requestor renews
// them (a resource manager or this process).
func (r *run) renewTokens(ctx context.Context) error {
	o := r.owner
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	in := client.CoreV1().Secrets(o.ControlPlane())
	selector := metav1.ListOptions{LabelSelector: labels.Set{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.LabelPurposeTokenRequestor, resourcesv1alpha1.LabelClass: tokenrequestor.ClassShoot}.String()}
	list, err := in.List(ctx, selector)
	if err != nil {
		return o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: o.ControlPlane()}, "list", err)
	}
	open := map[types.UID]string{}
	patch := []byte(`{"metadata":{"annotations":{"` + tokenrequestor.AnnotationRenew + `":null}}}`)
	for _, s := range list.Items {
		if len(s.Data) == 0 {
			continue // its first token is signed by the current key anyway
		}
		open[s.UID] = contentHash(&s)
		if _, err := in.Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kinds[o.identity().Kind].role}); err != nil && !apierrors.IsNotFound(err) {
			return o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: s.Name}, "ask for a new token in", err)
		}
	}
	r.tell("renew-tokens", fmt.Sprintf("%d tokens are renewed", len(open)))
	limited, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	for {
		waiting, err := notRenewed(limited, o, client, selector, open)
		if err == nil && len(waiting) == 0 {
			return nil
		}
		if !r.pause(limited, renewInterval) {
			return errors.Join(ctx.Err(), err, fmt.Errorf("tokens that the new key signs were not requested within %s: %s", renewTime, strings.Join(waiting, ", ")))
		}
	}
}

// seeds returns the access to the Seeds of the virtual garden.
func (r *run) seeds() (rotation.Seeds, error) {
	o := r.owner
	client, err := metadata.NewForConfig(o.Target.RESTConfig())
	if err != nil {
		return rotation.Seeds{}, fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	leases, err := kubernetes.NewForConfig(o.Target.RESTConfig())
	if err != nil {
		return rotation.Seeds{}, fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	return rotation.Seeds{Client: client, Leases: leases, FieldManager: kinds[o.identity().Kind].role, Clock: r.reconciler.Clock, Tell: func(m string) { r.tell("renew-on-seeds", m) }}, nil
}

// handOut distributes the new monitoring password to seeds; the Garden's monitoring uses it to read
// theirs.
func (r *run) handOut(ctx context.Context, result render.Result) error {
	o := r.owner
	if o.Target == nil {
		return nil
	}
	seeds, err := r.seeds()
	if err != nil {
		return err
	}
	for _, b := range result.Bundles {
		for _, object := range b.Objects {
			if b.Cluster != render.ClusterVirtual || object.GetKind() != "Secret" || object.GetLabels()[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleGlobalMonitoring {
				continue
			}
			if err := seeds.HandOut(ctx, object.GetName()); err != nil {
				return o.Target.Explain(apply.Ref{}, "have seeds take over the new password of the monitoring from", err)
			}
		}
	}
	return nil
}

// renewOnSeeds makes gardenlets switch to the new credentials.
func (r *run) renewOnSeeds(ctx context.Context, operations []string) error {
	o := r.owner
	if len(operations) == 0 || o.Target == nil {
		return nil
	}
	seeds, err := r.seeds()
	if err != nil {
		return err
	}
	for _, operation := range operations {
		if err := seeds.Ask(ctx, operation); err != nil {
			return o.Target.Explain(apply.Ref{}, "have seeds renew their access to", err)
		}
		if operation != gardencorev1beta1.GardenerOperationRenewKubeconfig {
			continue
		}
		// The old CA also signed certificates of gardenlets of self-hosted Shoots.
		if err := seeds.AskSelfHosted(ctx, operation); err != nil {
			return o.Target.Explain(apply.Ref{}, "have gardenlets of self-hosted Shoots renew their access to", err)
		}
	}
	return nil
}

// notRenewed returns the Secrets that still have the old token.
func notRenewed(ctx context.Context, o *subject, client kubernetes.Interface, selector metav1.ListOptions, before map[types.UID]string) ([]string, error) {
	list, err := client.CoreV1().Secrets(o.ControlPlane()).List(ctx, selector)
	if err != nil {
		return nil, err
	}
	waiting := sets.New[string]()
	for _, s := range list.Items {
		if was, asked := before[s.UID]; asked && was == contentHash(&s) {
			waiting.Insert("Secret " + s.Namespace + "/" + s.Name)
		}
	}
	return sets.List(waiting), nil
}

// contentHash identifies the content without storing it.
func contentHash(s *corev1.Secret) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		fmt.Fprintf(sum, "%s %d ", key, len(s.Data[key]))
		sum.Write(s.Data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
