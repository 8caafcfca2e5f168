// SPDX-License-Identifier: Apache-2.0

// Package reencrypt makes an API server rewrite its objects, so that etcd has them in the current
// encryption. It does not know why the encryption changed (controllers/rotation), and has no access
// to the content of objects.
package reencrypt

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

const (
	// defaultPageSize is the number of objects per list request, so that an API server need not
	// hold all objects of a garden for one answer.
	defaultPageSize = 500
	// concurrentWrites is the number of concurrent writes.
	concurrentWrites = 8
)

// Rewriter rewrites objects.
type Rewriter struct {
	// Client reads only metadata, so it never holds the content of Secrets.
	Client metadata.Interface
	Mapper meta.RESTMapper
	// PageSize is the number of objects per list request; default 500.
	PageSize int64
	// OnProgress is called now and then with the number of written objects; it may be nil.
	OnProgress func(written int)
}

// Rewrite rewrites all objects of some resources ("secrets", "shoots.core.gardener.cloud") with
// empty patches. For an empty patch, an API server writes an object only if its form in etcd is
// outdated (k8s.io/apiserver, storage/etcd3, GuaranteedUpdate). So a repetition after an
// interruption is cheap, and the objects show no trace. Rewrite skips objects that no longer exist
// and resources that are not served.
func (w Rewriter) Rewrite(ctx context.Context, resources []string) (int, error) {
	var written atomic.Int64
	for _, resource := range resources {
		gr := schema.ParseGroupResource(strings.TrimSuffix(resource, "."))
		gvr, err := w.Mapper.ResourceFor(gr.WithVersion(""))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return int(written.Load()), fmt.Errorf("find the resource %s: %w", resource, err)
		}
		if err := w.rewrite(ctx, gvr, &written); err != nil {
			return int(written.Load()), fmt.Errorf("rewrite all %s: %w", resource, err)
		}
	}
	return int(written.Load()), nil
}

func (w Rewriter) rewrite(ctx context.Context, gvr schema.GroupVersionResource, written *atomic.Int64) error {
	page := cmp.Or(w.PageSize, defaultPageSize)
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := w.Client.Resource(gvr).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// The list expired meanwhile. A new list costs no second write of rewritten objects.
			options.Continue = ""
			continue
		}
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(concurrentWrites)
		for _, item := range list.Items {
			group.Go(func() error {
				_, err := w.Client.Resource(gvr).Namespace(item.Namespace).Patch(gctx, item.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("%s: %w", strings.TrimPrefix(item.Namespace+"/"+item.Name, "/"), err)
				}
				if n := written.Add(1); w.OnProgress != nil && n%page == 0 {
					w.OnProgress(int(n))
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return ctx.Err()
		}
	}
}
