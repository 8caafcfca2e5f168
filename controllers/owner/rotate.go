// SPDX-License-Identifier: Apache-2.0

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
	"github.com/pergola-dev/pergola/apply/reencrypt"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/render"
)

// maxPasses limits the passes of the flow in one reconciliation: a rotation of the encryption key
// that completes automatically takes three.
const maxPasses = 4

// advanceRotations does the work of rotations other than new secrets, once everything was applied
// with these, and records the progress. It returns true if the flow has to run again.
func (r *run) advanceRotations(ctx context.Context, result render.Result) (again bool, err error) {
	o := r.owner
	c := o.currentState().rotation
	if !o.hasRotations() || o.Target == nil && !c.IsUnderWay() {
		return false, nil
	}
	key := c.Phase(rotation.ETCDEncryptionKey)
	declared := rotation.DeclaredEncryption(o.Input.Objects[Garden])
	changed := !rotation.IsSameEncryption(c.EncryptionAtRest, declared)
	if c.IsUnderWay() || changed {
		if err := r.waitForOldPods(ctx); err != nil {
			return false, err
		}
	}
	if further, err := r.completeRound(ctx, c); further || err != nil {
		return further, err
	}
	if c.Phase(rotation.ServiceAccountKey) == gardencorev1beta1.RotationPreparing {
		if err := r.renewTokens(ctx); err != nil {
			return false, err
		}
	}
	if err := r.renewSeedCredentials(ctx, c.SeedOperations()); err != nil {
		return false, err
	}
	if c.HasNewPasswords() {
		if err := r.distributeMonitoringPassword(ctx, result); err != nil {
			return false, err
		}
	}
	if changed || key == gardencorev1beta1.RotationPreparing {
		requests, err := secretRequests(o, result)
		if err != nil {
			return false, err
		}
		if err := r.rewriteEncrypted(ctx, rotation.EncryptedResources(requests)); err != nil {
			return false, err
		}
		if err := r.snapshotEtcd(ctx); err != nil {
			return false, err
		}
	}
	before := c.State
	after, again := before.FinishSteps(metav1.NewTime(r.reconciler.Clock.Now()))
	if changed {
		// Resources that are no longer encrypted stay readable while the status has them; the next
		// pass removes them from the configuration.
		again = again || c.EncryptionAtRest != nil
		after.EncryptionAtRest = &declared
	}
	for annotation, reached := range map[string]bool{annotationPopulated: c.AllReadNewKey, annotationResigned: c.AllHaveNewCertificates, annotationSnapshotted: changed || key == gardencorev1beta1.RotationPreparing} {
		if reached {
			if err := o.markAPIServers(ctx, annotation, false); err != nil {
				return false, err
			}
		}
	}
	if fields := rotation.Patch(before, after); fields != nil {
		if err := r.status.write(ctx, fields); err != nil {
			return false, err
		}
	}
	return again, r.reconciler.recordRotation(ctx, o, after)
}

// completeRound records the progress of all API servers after a round. It returns true if they have
// to restart again.
func (r *run) completeRound(ctx context.Context, c rotationStatus) (bool, error) {
	o, next := r.owner, c
	if c.Phase(rotation.ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing && !c.AllReadNewKey {
		if err := o.markAPIServers(ctx, annotationPopulated, true); err != nil {
			return false, err
		}
		next.AllReadNewKey = true
	}
	if c.Phase(rotation.CertificateAuthorities) == gardencorev1beta1.RotationCompleting && !c.AllHaveNewCertificates {
		if err := o.markAPIServers(ctx, annotationResigned, true); err != nil {
			return false, err
		}
		next.AllHaveNewCertificates = true
	}
	o.updateState(func(s *State) { s.rotation = next })
	return next.Progress != c.Progress, nil
}

// waitForOldPods waits until all pods of API servers from before the last rollout have ended: they
// still serve open connections with the old keys.
func (r *run) waitForOldPods(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, tokenRenewTimeout)
	defer cancel()
	judge := r.reconciler.judgeForCluster(r.owner.Local)
	judge.WaitForOldPods = true
	there, err := r.owner.apiServerMarks(limited, annotationPopulated)
	if err != nil {
		return err
	}
	for name := range there {
		ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: r.owner.ControlPlane(), Name: name}
		for {
			v, err := judge.JudgeObject(limited, ref)
			if err == nil && !v.Progressing {
				break
			}
			if !r.sleep(limited, tokenPollInterval) {
				return errors.Join(ctx.Err(), err, fmt.Errorf("%s: %s", ref, v.Message))
			}
		}
	}
	return nil
}

// sleep returns false if the context ends first.
func (r *run) sleep(ctx context.Context, d time.Duration) bool {
	timer := r.reconciler.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// rewriteEncrypted rewrites all encrypted objects.
func (r *run) rewriteEncrypted(ctx context.Context, resources []string) error {
	o := r.owner
	if o.Target == nil {
		return fmt.Errorf("%s has no access to its API server: encrypted objects cannot be rewritten", o)
	}
	client, clientErr := metadata.NewForConfig(o.Target.RESTConfig())
	served, err := discovery.NewDiscoveryClientForConfig(o.Target.RESTConfig())
	if err = errors.Join(clientErr, err); err != nil {
		return fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, served)
	if err != nil {
		return o.Target.Explain(apply.Ref{}, "discover", err)
	}
	r.reportProgress("re-encrypt", "objects are rewritten with the declared encryption")
	w := reencrypt.Rewriter{Client: client, Mapper: restmapper.NewDiscoveryRESTMapper(groups), OnProgress: func(n int) {
		r.reportProgress("re-encrypt", fmt.Sprintf("%d objects are rewritten", n))
	}}
	if _, err := w.Rewrite(ctx, resources); err != nil {
		return o.Target.Explain(apply.Ref{}, "rewrite encrypted objects", err)
	}
	return nil
}

// beginRound starts the next round of rotations.
func (r *run) beginRound() {
	o := r.owner
	if !o.hasRotations() {
		return
	}
	c := o.currentState().rotation
	r.round = r.round.Next(c.State, c.Progress, !rotation.IsSameEncryption(c.EncryptionAtRest, rotation.DeclaredEncryption(o.Input.Objects[Garden])))
}

// reportProgress reports progress between the steps of the flow.
func (r *run) reportProgress(step, message string) {
	r.reportEvent(flow.Event{ID: step, State: flow.Running, MessageOnly: true, Message: message, At: r.reconciler.Clock.Now(), Progress: flow.Progress{Percent: 99}})
}

const (
	// tokenRenewTimeout is the time limit for renewing tokens after the request.
	tokenRenewTimeout = 5 * time.Minute
	// tokenPollInterval is the time between checks of the tokens.
	tokenPollInterval = time.Second
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
		if _, err := in.Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: settingsByKind[o.renderOwner().Kind].fieldManager}); err != nil && !apierrors.IsNotFound(err) {
			return o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: s.Name}, "request a new token", err)
		}
	}
	r.reportProgress("renew-tokens", fmt.Sprintf("%d tokens are renewed", len(open)))
	limited, cancel := context.WithTimeout(ctx, tokenRenewTimeout)
	defer cancel()
	for {
		waiting, err := secretsWithOldToken(limited, o, client, selector, open)
		if err == nil && len(waiting) == 0 {
			return nil
		}
		if !r.sleep(limited, tokenPollInterval) {
			return errors.Join(ctx.Err(), err, fmt.Errorf("tokens with the new key were not requested within %s: %s", tokenRenewTimeout, strings.Join(waiting, ", ")))
		}
	}
}

// gardenletRequester returns the access to the Seeds of the virtual garden.
func (r *run) gardenletRequester() (rotation.GardenletRequester, error) {
	o := r.owner
	client, err := metadata.NewForConfig(o.Target.RESTConfig())
	if err != nil {
		return rotation.GardenletRequester{}, fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	leases, err := kubernetes.NewForConfig(o.Target.RESTConfig())
	if err != nil {
		return rotation.GardenletRequester{}, fmt.Errorf("cluster %s: %w", o.Target.Name(), err)
	}
	return rotation.GardenletRequester{Client: client, Leases: leases, FieldManager: settingsByKind[o.renderOwner().Kind].fieldManager, Clock: r.reconciler.Clock, Report: func(m string) { r.reportProgress("renew-on-seeds", m) }}, nil
}

// distributeMonitoringPassword distributes the new monitoring password to seeds; the Garden's
// monitoring uses it to read theirs.
func (r *run) distributeMonitoringPassword(ctx context.Context, result render.Result) error {
	o := r.owner
	if o.Target == nil {
		return nil
	}
	seeds, err := r.gardenletRequester()
	if err != nil {
		return err
	}
	for _, b := range result.Bundles {
		for _, object := range b.Objects {
			if b.Cluster != render.ClusterVirtual || object.GetKind() != "Secret" || object.GetLabels()[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleGlobalMonitoring {
				continue
			}
			if err := seeds.DistributeMonitoringPassword(ctx, object.GetName()); err != nil {
				return o.Target.Explain(apply.Ref{}, "distribute the new monitoring password to seeds", err)
			}
		}
	}
	return nil
}

// renewSeedCredentials makes gardenlets switch to the new credentials.
func (r *run) renewSeedCredentials(ctx context.Context, operations []string) error {
	o := r.owner
	if len(operations) == 0 || o.Target == nil {
		return nil
	}
	seeds, err := r.gardenletRequester()
	if err != nil {
		return err
	}
	for _, operation := range operations {
		if err := seeds.RequestFromSeeds(ctx, operation); err != nil {
			return o.Target.Explain(apply.Ref{}, "request renewed access for seeds", err)
		}
		if operation != gardencorev1beta1.GardenerOperationRenewKubeconfig {
			continue
		}
		// The old CA also signed certificates of gardenlets of self-hosted Shoots.
		if err := seeds.RequestFromSelfHosted(ctx, operation); err != nil {
			return o.Target.Explain(apply.Ref{}, "request renewed access for self-hosted Shoots", err)
		}
	}
	return nil
}

// secretsWithOldToken returns the Secrets that still have the old token.
func secretsWithOldToken(ctx context.Context, o *ownerSession, client kubernetes.Interface, selector metav1.ListOptions, before map[types.UID]string) ([]string, error) {
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
