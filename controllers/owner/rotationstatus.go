// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

const (
	// annotationPopulated on the Deployment of an API server means that all its processes read data
	// of the new encryption key (upstream's).
	annotationPopulated = "credentials.gardener.cloud/new-encryption-key-populated"
	// annotationResigned on it means that all servers have certificates of the new CAs.
	annotationResigned = "credentials.pergola.dev/servers-resigned"
)

// rotationStatus is the state of rotations, and the progress of the API servers.
type rotationStatus struct {
	rotation.State
	rotation.Progress
}

// hasRotations reports whether this package rotates the owner's credentials: only those of a
// Garden.
func (o *ownerSession) hasRotations() bool {
	return len(settingsByKind[o.renderOwner().Kind].encryptingAPIServers) > 0
}

// readCredentials reads the state of rotations from the live status.
func (r *Reconciler) readCredentials(ctx context.Context, o *ownerSession) error {
	if !o.hasRotations() {
		return nil
	}
	live, _, err := o.readStatus(ctx)
	if apierrors.IsNotFound(err) || apply.IsUnserved(err) {
		return nil // the declarations create the object and its kind
	}
	if err != nil {
		return err
	}
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	state, err := rotation.ReadState(status)
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return r.recordRotation(ctx, o, state)
}

// recordRotation records the state of rotations, and the progress from the annotations of API
// servers.
func (r *Reconciler) recordRotation(ctx context.Context, o *ownerSession, state rotation.State) error {
	c := rotationStatus{State: state}
	for _, each := range []struct {
		reached    *bool
		is         bool
		annotation string
	}{
		{&c.AllReadNewKey, state.Phase(rotation.ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing, annotationPopulated},
		{&c.AllHaveNewCertificates, state.Phase(rotation.CertificateAuthorities) == gardencorev1beta1.RotationCompleting, annotationResigned},
	} {
		if !each.is {
			continue
		}
		marked, err := o.apiServerMarks(ctx, each.annotation)
		if err != nil {
			return err
		}
		*each.reached = areAllMarked(marked)
	}
	o.updateState(func(s *State) { s.rotation = c })
	return nil
}

// apiServerMarks returns the existing API servers, and whether they have an annotation.
func (o *ownerSession) apiServerMarks(ctx context.Context, annotation string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range settingsByKind[o.renderOwner().Kind].encryptingAPIServers {
		ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.ControlPlane(), Name: name}
		live, err := o.Local.GetLive(ctx, ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, o.Local.Explain(ref, "read", err)
		}
		out[name] = live.GetAnnotations()[annotation] == "true"
	}
	return out, nil
}

// areAllMarked reports whether there are API servers, and all have the annotation.
func areAllMarked(marked map[string]bool) bool {
	return len(marked) > 0 && !slices.Contains(slices.Collect(maps.Values(marked)), false)
}

// markAPIServers sets or removes an annotation of progress on all API servers.
func (o *ownerSession) markAPIServers(ctx context.Context, annotation string, reached bool) error {
	marked, err := o.apiServerMarks(ctx, annotation)
	if err != nil {
		return err
	}
	for name, is := range marked {
		if is == reached {
			continue
		}
		var value any
		if reached {
			value = "true"
		}
		ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.ControlPlane(), Name: name}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}}
		if _, err := o.Local.MergePatch(ctx, ref, patch, settingsByKind[o.renderOwner().Kind].fieldManager, ""); err != nil {
			return o.Local.Explain(ref, "mark for the rotation of credentials", err)
		}
	}
	return nil
}

// withCredentials adds the status fields that components read to the declaration.
func (o *ownerSession) withCredentials(in render.Input) (render.Input, error) {
	if !o.hasRotations() || in.Objects[Garden] == nil {
		return in, nil
	}
	var known map[string]any
	raw, err := json.Marshal(o.currentState().rotation.State)
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return in, fmt.Errorf("%s: status.credentials: %w", o, err)
	}
	garden := maps.Clone(in.Objects[Garden])
	garden["status"] = map[string]any{"credentials": known}
	in.Objects = maps.Clone(in.Objects)
	in.Objects[Garden] = garden
	return in, nil
}

// rotatedRequests adapts the requests to the secrets manager to the rotations, and returns when
// these were initiated.
func (o *ownerSession) rotatedRequests(configs []secrets.Config) ([]secrets.Config, map[string]time.Time) {
	if !o.hasRotations() {
		return configs, nil
	}
	c := o.currentState().rotation
	return c.AdaptRequests(configs, c.Progress), c.RotationTimes()
}

// startOperations starts the operations that the Garden's annotation requests, and rotations that
// follow from the declaration. It returns the status fields to write, the text of the annotation to
// remove, and refused for impossible operations.
func (r *Reconciler) startOperations(ctx context.Context, o *ownerSession, live *unstructured.Unstructured, now metav1.Time) (fields map[string]any, asked string, refused error, err error) {
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	before, err := rotation.ReadState(status)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", o, err)
	}
	version, err := semver.NewVersion(o.Input.TargetVersion)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: Kubernetes version %q: %w", o, o.Input.TargetVersion, err)
	}
	asked = live.GetAnnotations()[annotationOperation]
	after, refused := before.BeginOperations(asked, int(version.Minor()), now)
	if refused != nil {
		refused = fmt.Errorf("the operation %q of %s was removed: %w", asked, o, refused)
	}
	after = after.BeginForProvider(rotation.DeclaredProvider(o.Input.Objects[Garden]), now)
	return rotation.Patch(before, after), asked, refused, r.recordRotation(ctx, o, after)
}

// removeOperation removes the annotation of operations that the status already has. A newer
// annotation stays.
func (o *ownerSession) removeOperation(ctx context.Context, asked string) error {
	if asked == "" {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := o.ObjectCluster.GetLive(ctx, o.Ref)
		if err != nil {
			return o.ObjectCluster.Explain(o.Ref, "read", err)
		}
		if live.GetAnnotations()[annotationOperation] != asked {
			return nil
		}
		patch := map[string]any{"metadata": map[string]any{
			"resourceVersion": live.GetResourceVersion(), "annotations": map[string]any{annotationOperation: nil},
		}}
		_, err = o.ObjectCluster.MergePatch(ctx, o.Ref, patch, settingsByKind[o.renderOwner().Kind].fieldManager, "")
		return err
	})
}
