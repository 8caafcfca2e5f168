package managedresource

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
)

// Judge looks at live objects and returns the first unhealthy one and the first one that is still
// rolling out. Objects come from the live cache; pods are read only where a
// workload is not healthy, to name their reason.
func Judge(ctx context.Context, c *apply.Cluster, refs []apply.Ref) (bad, rolling *health.Verdict, err error) {
	for _, ref := range refs {
		v, err := Verdict(ctx, c, ref)
		if err != nil {
			return bad, rolling, err
		}
		if !v.Healthy && bad == nil {
			bad = &v
		}
		if v.Progressing && rolling == nil {
			rolling = &v
		}
	}
	return bad, rolling, nil
}

// Verdict of one live object.
func Verdict(ctx context.Context, c *apply.Cluster, ref apply.Ref) (health.Verdict, error) {
	obj, err := c.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return health.NotFound(ref.GVK(), ref.Namespace, ref.Name), nil
	}
	if err != nil {
		return health.Verdict{}, c.Explain(ref, "read", err)
	}
	v := health.Check(obj)
	if v.Healthy && !v.Progressing {
		return v, nil
	}
	pods, err := podsOf(ctx, c, obj)
	if err != nil || len(pods) == 0 {
		return v, nil
	}
	return health.Check(obj, health.WithPods(pods)), nil
}

func podsOf(ctx context.Context, c *apply.Cluster, obj *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, ok := health.PodSelector(obj)
	if !ok {
		return nil, nil
	}
	list, err := c.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		Namespace(obj.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	pods := make([]corev1.Pod, 0, len(list.Items))
	for _, item := range list.Items {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &pod); err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}
