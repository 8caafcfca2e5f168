package landscape

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// configMaps is the kind that landscapes keep their records in.
var configMaps = apply.Ref{APIVersion: "v1", Kind: "ConfigMap"}

// managerRecords writes the records of landscapes that are no inventories.
const managerRecords = "pergola-records"

const (
	questionsKey = "questions.json"
	// answerPrefix begins the keys under which the others say which questions they have seen.
	answerPrefix = "seen-by."
)

// question is an object that a landscape does not declare any more.
type question struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// Asked tells one removal of the object from another.
	Asked time.Time `json:"asked"`
	// Reviewed says that whoever removed its file could see that it goes: that counts until the
	// others have answered, over other commits and restarts.
	Reviewed bool `json:"reviewed,omitempty"`
}

func (q question) id() string {
	return fmt.Sprintf("%s %s %s %s", q.Cluster, q.Object.GroupKind(), q.Object, q.Asked.UTC().Format(time.RFC3339Nano))
}

// removals are the questions of one landscape, and who has seen which.
type removals struct {
	now       time.Time
	questions []question
	seen      map[string]map[string]bool // by landscape and question
	kept      map[string]bool            // those that are asked in this run, too
	loaded    bool
	changed   bool // something else than that more or less is asked
}

func questionsOf(o *unstructured.Unstructured) []question {
	text, _, _ := unstructured.NestedString(o.Object, "data", questionsKey)
	var out []question
	// What cannot be read was written by a person: it is asked again.
	_ = json.Unmarshal([]byte(text), &out)
	return out
}

// removals reads what this landscape has asked. That costs no request.
func (c *Converger) removals(ctx context.Context) (*removals, error) {
	out := &removals{now: c.options.Clock.Now(), seen: map[string]map[string]bool{}, kept: map[string]bool{}}
	live, err := c.links.clusters[Runtime].Get(ctx, c.removalsRef(c.landscape.Config.Name))
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("removals of landscape %s: %w", c.landscape.Config.Name, c.links.clusters[Runtime].Explain(c.removalsRef(c.landscape.Config.Name), "read", err))
	}
	out.loaded, out.questions = true, questionsOf(live)
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	for key, text := range data {
		if name, is := strings.CutPrefix(key, answerPrefix); is {
			out.seen[name] = map[string]bool{}
			for line := range strings.Lines(text) {
				out.seen[name][strings.TrimSpace(line)] = true
			}
		}
	}
	return out, nil
}

func (c *Converger) removalsRef(landscape string) apply.Ref {
	ref := configMaps
	ref.Namespace, ref.Name = owner.InventoryNamespace, inventoryName(landscape, removalsBundle)
	return ref
}

func (r *removals) find(cluster string, ref apply.Ref) *question {
	for i, q := range r.questions {
		if q.Cluster == cluster && withoutVersion(q.Object) == withoutVersion(ref) {
			return &r.questions[i]
		}
	}
	return nil
}

func (r *removals) answered(cluster string, ref apply.Ref, by string) bool {
	q := r.find(cluster, ref)
	return q != nil && r.seen[by][q.id()]
}

// ask asks about an object; reviewed says that its deletion was to be seen.
func (r *removals) ask(cluster string, ref apply.Ref, reviewed bool) {
	q := r.find(cluster, ref)
	if q == nil {
		r.questions = append(r.questions, question{Cluster: cluster, Object: ref, Asked: r.now})
		q = &r.questions[len(r.questions)-1]
	}
	r.kept[q.id()] = true
	if reviewed && !q.Reviewed {
		q.Reviewed, r.changed = true, true
	}
}

// reviewed tells whether the deletion of an object that is asked about was to be seen.
func (r *removals) reviewed(cluster string, ref apply.Ref) bool {
	q := r.find(cluster, ref)
	return q != nil && q.Reviewed
}

// held notes that the gate holds an object although its deletion was to be seen: from now on that
// does not count any more.
func (r *removals) held(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil && q.Reviewed {
		q.Reviewed, r.changed = false, true
	}
}

// keep keeps a question that is answered, because the object is held for another reason.
func (r *removals) keep(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil {
		r.kept[q.id()] = true
	}
}

// keepUndeclared keeps the questions about all objects of a cluster that are not declared again: a
// run that failed may not have come to where they are asked, and what the others have answered, and
// a review has shown, is true still.
func (r *removals) keepUndeclared(cluster string, declared []*unstructured.Unstructured) {
	again := map[apply.Ref]bool{}
	for _, o := range declared {
		again[withoutVersion(apply.RefOf(o))] = true
	}
	for _, q := range r.questions {
		if q.Cluster == cluster && !again[withoutVersion(q.Object)] {
			r.kept[q.id()] = true
		}
	}
}

// saveRemovals writes what is asked now about one cluster; questions that are settled go.
func (c *Converger) saveRemovals(ctx context.Context, cluster string, r *removals) error {
	before := len(r.questions)
	asked := slices.DeleteFunc(slices.Clone(r.questions), func(q question) bool { return q.Cluster == cluster && !r.kept[q.id()] })
	if len(asked) == before && !r.changed && !slices.ContainsFunc(asked, func(q question) bool { return q.Asked.Equal(r.now) }) {
		return nil
	}
	ref := c.removalsRef(c.landscape.Config.Name)
	if len(asked) == 0 {
		if !r.loaded {
			return nil
		}
		err := c.configMapClient().Delete(ctx, ref.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return c.links.clusters[Runtime].Explain(ref, "delete", err)
		}
		return nil
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	return c.writeRecord(ctx, ref, removalsBundle, map[string]any{questionsKey: string(text)}, managerRecords)
}

// answerRemovals tells the other landscapes that this one has seen what they give up. It is called
// when everything that this one declares is in its inventory.
func (c *Converger) answerRemovals(ctx context.Context) error {
	all, err := c.landscapeMaps(ctx)
	if err != nil {
		return err
	}
	self := c.landscape.Config.Name
	declares := sync.OnceValue(c.declaredRefs)
	for _, o := range all {
		name, _ := strings.CutPrefix(o.GetLabels()[owner.LabelInventory], "landscape.")
		if name == self || o.GetName() != inventoryName(name, removalsBundle) {
			continue
		}
		var seen []string
		for _, q := range questionsOf(o) {
			// What is declared here and is not in the inventory is left alone by an annotation:
			// nobody else is to delete it.
			if !c.currentAt().Before(q.Asked) && !declares()[q.Cluster][withoutVersion(q.Object)] {
				seen = append(seen, q.id())
			}
		}
		text := strings.Join(seen, "\n")
		before, _, _ := unstructured.NestedString(o.Object, "data", answerPrefix+self)
		if text == before {
			continue
		}
		// A field of our own in an object of another landscape: it must not be made anew when that
		// one has just removed it.
		body, err := json.Marshal(map[string]any{"data": map[string]any{answerPrefix + self: text}})
		if err != nil {
			return err
		}
		_, err = c.configMapClient().Patch(ctx, o.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: managerRecords + "-" + self})
		if err != nil && !apierrors.IsNotFound(err) {
			return c.links.clusters[Runtime].Explain(c.removalsRef(name), "answer", err)
		}
	}
	return nil
}

// declaredRefs are all objects that the files declare, by cluster.
func (c *Converger) declaredRefs() map[string]map[apply.Ref]bool {
	out := map[string]map[apply.Ref]bool{}
	for cluster, d := range split(c.landscape) {
		out[cluster] = map[apply.Ref]bool{}
		for ref := range d.sources {
			out[cluster][withoutVersion(ref)] = true
		}
	}
	return out
}

// writeRecord applies a ConfigMap with the labels by which it is in the live cache.
func (c *Converger) writeRecord(ctx context.Context, ref apply.Ref, bundle string, data map[string]any, manager string) error {
	keys := conventions.Keys()
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": map[string]any{
		"name": ref.Name, "namespace": ref.Namespace, "labels": map[string]any{keys.ManagedByLabel: keys.ManagedByValue,
			owner.LabelInventory: "landscape." + c.landscape.Config.Name, owner.LabelBundle: bundle, owner.LabelCluster: Runtime},
	}}
	_, err := c.configMapClient().Apply(ctx, ref.Name, &unstructured.Unstructured{Object: object}, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return c.links.clusters[Runtime].Explain(ref, "write", err)
	}
	return nil
}

func (c *Converger) configMapClient() dynamic.ResourceInterface {
	return c.links.clusters[Runtime].Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(owner.InventoryNamespace)
}

// sortedNames are the keys of a map in order.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
