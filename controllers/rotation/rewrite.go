package rotation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/pergola-dev/pergola/secrets"
)

const (
	// defaultPage is how many objects are listed at a time: a garden has many, and an API server
	// does not keep all of them for one answer.
	defaultPage = 500
	// writers is how many objects are written at a time.
	writers = 8
)

// EncryptedResources are the resources that the API servers are asked to encrypt, or were before:
// objects of all of them have to be written anew.
func EncryptedResources(configs []secrets.Config) []string {
	var out []string
	for _, c := range configs {
		if c.Kind == secrets.KindEtcdEncryptionConfiguration {
			out = append(append(out, c.Resources...), c.EncryptedResources...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Rewriter has the objects of an API server written anew, so that they are in etcd as the API
// server encrypts now.
type Rewriter struct {
	// Client knows metadata, which is enough: the content of Secrets is read by nobody.
	Client metadata.Interface
	Mapper meta.RESTMapper
	// Page is how many objects are listed at a time; default 500.
	Page int64
	// Progress hears how many objects were written, now and then; it may be nil.
	Progress func(written int)
}

// Rewrite writes all objects of some resources ("secrets", "shoots.core.gardener.cloud"), with
// patches that change nothing: an API server writes such an object anew if it is not in etcd as it
// would write it, and else leaves it alone (k8s.io/apiserver, storage/etcd3, GuaranteedUpdate). So
// it costs what there is to do, it can be done again after an interruption, and no trace is left in
// the objects. What does not exist any more is passed over, and so is a resource that is not
// served: there are no objects of it.
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
			return int(written.Load()), fmt.Errorf("write all %s anew: %w", resource, err)
		}
	}
	return int(written.Load()), nil
}

func (w Rewriter) rewrite(ctx context.Context, gvr schema.GroupVersionResource, written *atomic.Int64) error {
	page := cmp.Or(w.Page, defaultPage)
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := w.Client.Resource(gvr).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// It took so long that the list is gone. What is written already costs no second write.
			options.Continue = ""
			continue
		}
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for _, item := range list.Items {
			group.Go(func() error {
				_, err := w.Client.Resource(gvr).Namespace(item.Namespace).Patch(gctx, item.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s: %w", strings.TrimPrefix(item.Namespace+"/"+item.Name, "/"), err)
				}
				if n := written.Add(1); w.Progress != nil && n%page == 0 {
					w.Progress(int(n))
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
