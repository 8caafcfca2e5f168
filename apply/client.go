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
	// of the object that is changed: an apply that comes late then cannot make it anew
	uid   types.UID
	force bool
	dry   bool
}

// patchApply is the one request for a changed object: a server-side apply. The answer goes into the
// live cache. created tells a new object from a changed one.
func (c *Cluster) patchApply(ctx context.Context, o *unstructured.Unstructured, opts patchOptions) (answer *unstructured.Unstructured, created bool, err error) {
	mapping, err := c.Mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, false, err
	}
	if opts.uid != "" {
		o = withUID(o, opts.uid)
	}
	body, err := payload(o)
	if err != nil {
		return nil, false, err
	}
	path := pathOf(mapping, o.GetNamespace(), o.GetName())
	began := c.clock.Now()
	for attempt := 0; ; attempt++ {
		answer, created, err = c.patch(ctx, mapping, path, types.ApplyYAMLPatchType, body, opts)
		if isPolicyNotReady(err) && c.policySettles(ctx, began) {
			continue
		}
		if attempt >= 3 || ctx.Err() != nil || !isRetryable(err, o.GetResourceVersion() == "") {
			break
		}
	}
	return answer, created, err
}

// withUID is a copy of an object as far as needed to set its UID.
func withUID(o *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	metadata, _ := o.Object["metadata"].(map[string]any)
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	metadata = maps.Clone(metadata)
	metadata["uid"] = string(uid)
	out.Object["metadata"] = metadata
	return out
}

// isOtherObject tells whether an apply was refused because the object that it was meant for is
// gone, and maybe another one is in its place.
func isOtherObject(err error) bool {
	if apierrors.IsConflict(err) {
		return !isManagerConflict(err) && strings.Contains(strings.ToLower(err.Error()), "uid")
	}
	status, ok := statusOf(err)
	return ok && apierrors.IsInvalid(err) && status.Details != nil &&
		slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// isRetryable is true when the same apply may well succeed now: another writer was faster, or the
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
	raw, err := bodyOf(req.Do(quiet(ctx)).StatusCode(&code))
	if err != nil {
		return nil, false, err
	}
	answer, err := objectAnswered(raw)
	if err != nil {
		return nil, false, err
	}
	if !opts.dry {
		c.observe(m, answer)
	}
	return answer, code == http.StatusCreated, nil
}

// quiet keeps client-go from logging what we report as errors anyway.
func quiet(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// bodyOf is the body of a good answer, or the error in a bad one: Raw alone would lose its causes.
func bodyOf(answer rest.Result) ([]byte, error) {
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

func (c *Cluster) observe(m *meta.RESTMapping, o *unstructured.Unstructured) {
	c.mu.Lock()
	w := c.stores[m.Resource]
	c.mu.Unlock()
	if w == nil {
		return
	}
	if groupKindOf(o) != namespaceKind && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && ptr.Deref(o.GetDeletionGracePeriodSeconds(), 0) == 0 {
		w.forget(o) // this write took away what kept it
		return
	}
	w.observe(o)
}

// delete asks for the deletion of exactly this object (by UID). gone is true when the server says
// that it is gone already; otherwise finalizers, grace period or dependents keep it for a while.
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
		// for the counter: with a body, the server reads the body only
		req.Param("dryRun", metav1.DryRunAll)
	}
	raw, err := bodyOf(req.Do(quiet(ctx)))
	if apierrors.IsNotFound(err) {
		gone, err = true, nil
	} else if err == nil {
		gone = saysGone(raw)
	}
	if answer := (&unstructured.Unstructured{}); err == nil && !gone && !dry && answer.UnmarshalJSON(raw) == nil && answer.GetUID() == uid {
		c.observe(mapping, answer) // it says what the object waits for
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

// saysGone reads the answer to a deletion: a Status, or the object itself; in that case it is gone
// when nothing is left to wait for.
func saysGone(raw []byte) bool {
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

// objectAnswered is the object that a server answered with. What cannot be read is not quoted: it
// may hold a Secret.
func objectAnswered(raw []byte) (*unstructured.Unstructured, error) {
	answer := &unstructured.Unstructured{}
	if err := answer.UnmarshalJSON(raw); err != nil {
		return nil, safef("the answer of the server cannot be read")
	}
	return answer, nil
}
