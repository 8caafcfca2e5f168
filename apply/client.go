// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

type patchOptions struct {
	manager string
	// UID of the changed object: a late apply cannot create the object again
	uid   types.UID
	force bool
	dry   bool
}

// patchApply sends the server-side apply of an object and puts the answer into the live cache.
// created distinguishes a new object from a changed one.
func (c *Cluster) patchApply(ctx context.Context, o *unstructured.Unstructured, opts patchOptions) (answer *unstructured.Unstructured, created bool, err error) {
	mapping, err := c.Mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, false, err
	}
	if opts.uid != "" {
		o = withUID(o, opts.uid)
	}
	body, err := encodeBody(o)
	if err != nil {
		return nil, false, err
	}
	path := pathOf(mapping, o.GetNamespace(), o.GetName())
	began := c.clock.Now()
	for attempt := 0; ; attempt++ {
		answer, created, err = c.patch(ctx, mapping, path, types.ApplyYAMLPatchType, body, opts)
		if isPolicyNotReady(err) && c.waitForPolicyRetry(ctx, began) {
			continue
		}
		if attempt >= 3 || ctx.Err() != nil || !isRetryable(err, o.GetResourceVersion() == "") {
			break
		}
	}
	return answer, created, err
}

// withUID returns a shallow copy of an object with its UID set.
func withUID(o *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	metadata, _ := o.Object["metadata"].(map[string]any)
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	metadata = maps.Clone(metadata)
	metadata["uid"] = string(uid)
	out.Object["metadata"] = metadata
	return out
}

// isOtherObject reports whether an apply was refused because its object no longer exists or another
// one replaced it.
func isOtherObject(err error) bool {
	if apierrors.IsConflict(err) {
		return !isManagerConflict(err) && strings.Contains(strings.ToLower(err.Error()), "uid")
	}
	status, ok := statusOf(err)
	return ok && apierrors.IsInvalid(err) && status.Details != nil &&
		slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// isRetryable reports whether the same apply may succeed now: another writer was faster, or the
// server closed an idle connection.
func isRetryable(err error, unconditional bool) bool {
	if err == nil {
		return false
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		status, _ := statusOf(err)
		return unconditional && !hasCause(status, metav1.CauseTypeFieldManagerConflict) && !isOtherObject(err)
	}
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func (c *Cluster) patch(ctx context.Context, m *meta.RESTMapping, path []string, kind types.PatchType, body []byte, opts patchOptions) (*unstructured.Unstructured, bool, error) {
	req := c.rest.Patch(kind).AbsPath(path...).Param("fieldManager", opts.manager).Body(body)
	if opts.force {
		req.Param("force", "true")
	}
	if opts.dry {
		req.Param("dryRun", metav1.DryRunAll)
	}
	code := 0
	raw, err := responseBody(req.Do(withoutLogging(ctx)).StatusCode(&code))
	if err != nil {
		return nil, false, err
	}
	answer, err := decodeResponse(raw)
	if err != nil {
		return nil, false, err
	}
	if !opts.dry {
		c.cacheResponse(m, answer)
	}
	return answer, code == http.StatusCreated, nil
}

// withoutLogging stops client-go from logging errors that we report anyway.
func withoutLogging(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// responseBody returns the body of a successful answer, or its error: Raw alone would lose the
// causes.
func responseBody(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

func pathOf(m *meta.RESTMapping, namespace, name string) []string {
	path := []string{"apis", m.Resource.Group, m.Resource.Version}
	if m.Resource.Group == "" {
		path = []string{"api", m.Resource.Version}
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		path = append(path, "namespaces", namespace)
	}
	return append(path, m.Resource.Resource, name)
}

func (c *Cluster) cacheResponse(m *meta.RESTMapping, o *unstructured.Unstructured) {
	c.mu.Lock()
	w := c.stores[m.Resource]
	c.mu.Unlock()
	if w == nil {
		return
	}
	if groupKindOf(o) != namespaceKind && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && ptr.Deref(o.GetDeletionGracePeriodSeconds(), 0) == 0 {
		w.forget(o) // this write removed its last finalizer
		return
	}
	w.storeResponse(o)
}

// delete deletes exactly this object (by UID). gone means that the server has removed it; otherwise
// finalizers, the grace period or dependents delay the removal.
func (c *Cluster) delete(ctx context.Context, o *unstructured.Unstructured, propagation metav1.DeletionPropagation, dry bool) (gone bool, err error) {
	mapping, err := c.Mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return false, err
	}
	uid := o.GetUID()
	opts := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid}}
	if propagation != "" {
		opts.PropagationPolicy = &propagation
	}
	if dry {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(opts)
	if err != nil {
		return false, err
	}
	req := c.rest.Delete().AbsPath(pathOf(mapping, o.GetNamespace(), o.GetName())...).Body(body)
	if dry {
		// for the counter: the server reads only the body if there is one
		req.Param("dryRun", metav1.DryRunAll)
	}
	raw, err := responseBody(req.Do(withoutLogging(ctx)))
	if apierrors.IsNotFound(err) {
		gone, err = true, nil
	} else if err == nil {
		gone = isDeletionDone(raw)
	}
	if answer := (&unstructured.Unstructured{}); err == nil && !gone && !dry && answer.UnmarshalJSON(raw) == nil && answer.GetUID() == uid {
		// the answer shows the finalizers that the deletion waits for
		c.cacheResponse(mapping, answer)
	}
	if gone && !dry {
		c.mu.Lock()
		w := c.stores[mapping.Resource]
		c.mu.Unlock()
		if w != nil {
			w.forget(o)
		}
	}
	return gone, err
}

// isDeletionDone reports whether the answer to a deletion, a Status or the object itself, says that
// the object no longer exists. An object without anything to wait for counts as deleted.
func isDeletionDone(raw []byte) bool {
	answer := &unstructured.Unstructured{}
	if err := answer.UnmarshalJSON(raw); err != nil {
		return false
	}
	if answer.GetKind() == "Status" && answer.GetAPIVersion() == "v1" {
		status, _, _ := unstructured.NestedString(answer.Object, "status")
		return status == metav1.StatusSuccess
	}
	grace := answer.GetDeletionGracePeriodSeconds()
	if answer.GetKind() == "Namespace" {
		return false
	}
	return len(answer.GetFinalizers()) == 0 && (answer.GetDeletionTimestamp() == nil || grace != nil && *grace == 0)
}

// decodeResponse decodes the object that a server returned. Its error does not quote the answer,
// which may contain a Secret.
func decodeResponse(raw []byte) (*unstructured.Unstructured, error) {
	answer := &unstructured.Unstructured{}
	if err := answer.UnmarshalJSON(raw); err != nil {
		return nil, valueFreeErrorf("the answer of the server cannot be read")
	}
	return answer, nil
}
