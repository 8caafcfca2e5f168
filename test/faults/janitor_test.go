// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// deletionController does the work of Kubernetes controllers on deletions: it empties and finalizes
// terminating namespaces, and ends foreground deletions. Those in kube-controller-manager start
// after seconds.
type deletionController struct {
	ctx        context.Context
	client     kubernetes.Interface
	meta       metadata.Interface
	group      sync.WaitGroup
	inProgress sync.Map
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// runJanitor works until the context ends.
func runJanitor(ctx context.Context, config *rest.Config) {
	j := &deletionController{ctx: ctx, client: kubernetes.NewForConfigOrDie(config), meta: metadata.NewForConfigOrDie(config)}
	j.group.Go(func() {
		j.handleDeletions(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, j.finalizeNamespace)
	})
	j.group.Go(func() { j.handleDeletions(deployments, j.finishForeground) })
	j.group.Wait()
}

// handleDeletions calls do for each object that is being deleted. An informer would pause too long
// after a restart.
func (j *deletionController) handleDeletions(gvr schema.GroupVersionResource, do func(*metav1.PartialObjectMetadata)) {
	see := func(o *metav1.PartialObjectMetadata) {
		if o.DeletionTimestamp == nil {
			return
		}
		if _, busy := j.inProgress.LoadOrStore(o.UID, true); !busy {
			j.group.Go(func() { do(o); j.inProgress.Delete(o.UID) })
		}
	}
	j.retryUntilDone(func() bool {
		list, err := j.meta.Resource(gvr).List(j.ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for i := range list.Items {
			see(&list.Items[i])
		}
		changes, err := j.meta.Resource(gvr).Watch(j.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: ptr.To[int64](30)})
		if err != nil {
			return false
		}
		defer changes.Stop()
		for event := range changes.ResultChan() {
			if o, ok := event.Object.(*metav1.PartialObjectMetadata); ok && event.Type != watch.Deleted {
				see(o)
			}
		}
		return false
	})
}

// retryUntilDone retries until try succeeds.
func (j *deletionController) retryUntilDone(try func() bool) {
	_ = wait.PollUntilContextCancel(j.ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return try(), nil })
}

func (j *deletionController) finishForeground(o *metav1.PartialObjectMetadata) {
	if !slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents) {
		return
	}
	j.retryUntilDone(func() bool {
		_, err := j.meta.Resource(deployments).Namespace(o.Namespace).Patch(j.ctx, o.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null,"uid":"`+string(o.UID)+`"}}`), metav1.PatchOptions{})
		return err == nil || isNotFound(err)
	})
}

func (j *deletionController) finalizeNamespace(o *metav1.PartialObjectMetadata) {
	j.retryUntilDone(func() bool {
		live, err := j.client.CoreV1().Namespaces().Get(j.ctx, o.Name, metav1.GetOptions{})
		if isNotFound(err) || err == nil && live.UID != o.UID {
			return true
		}
		if err != nil || !j.deleteContents(o.Name) {
			return false
		}
		live.Spec.Finalizers = nil
		_, err = j.client.CoreV1().Namespaces().Finalize(j.ctx, live, metav1.UpdateOptions{})
		return err == nil || isNotFound(err)
	})
}

// deleteContents deletes the objects of a namespace and reports whether it was empty.
func (j *deletionController) deleteContents(namespace string) bool {
	lists, err := j.client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return false
	}
	left := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return false
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "deletecollection") || !slices.Contains(r.Verbs, "list") || strings.Contains(gv.Group, "events") {
				continue
			}
			resource := j.meta.Resource(gv.WithResource(r.Name)).Namespace(namespace)
			found, err := resource.List(j.ctx, metav1.ListOptions{})
			if isNotFound(err) {
				continue // its definition no longer exists
			}
			if err != nil {
				return false
			}
			if left += len(found.Items); len(found.Items) > 0 {
				_ = resource.DeleteCollection(j.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			}
		}
	}
	return left == 0
}
