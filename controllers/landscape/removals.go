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

// configMaps is the kind of the landscapes' records.
var configMaps = apply.Ref{APIVersion: "v1", Kind: "ConfigMap"}

// managerRecords writes the records that are not inventories.
const managerRecords = "pergola-records"

const (
	questionsKey = "questions.json"
	// answerPrefix starts the keys with the questions that another landscape has seen.
	answerPrefix = "seen-by."
)

// question is about an object that a landscape no longer declares.
type question struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// Asked distinguishes successive removals of an object.
	Asked time.Time `json:"asked"`
	// Reviewed means that a review has shown the deletion. It is valid until the others have
	// answered, across commits and restarts.
	Reviewed bool `json:"reviewed,omitempty"`
}

func (q question) id() string {
	return fmt.Sprintf("%s %s %s %s", q.Cluster, q.Object.GroupKind(), q.Object, q.Asked.UTC().Format(time.RFC3339Nano))
}

// removals are the questions of one landscape, and the answers.
type removals struct {
	now       time.Time
	questions []question
	seen      map[string]map[string]bool // by landscape and question
	kept      map[string]bool            // asked in this run as well
	loaded    bool
	changed   bool // beyond added or removed questions
}

func questionsOf(o *unstructured.Unstructured) []question {
	text, _, _ := unstructured.NestedString(o.Object, "data", questionsKey)
	var out []question
	// Only a person writes unreadable questions: they are repeated.
	_ = json.Unmarshal([]byte(text), &out)
	return out
}

// removals returns the questions of this landscape, without a request.
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

// ask adds a question about an object; reviewed means that a review has shown its deletion.
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

// reviewed reports whether a review has shown the deletion of a questioned object.
func (r *removals) reviewed(cluster string, ref apply.Ref) bool {
	q := r.find(cluster, ref)
	return q != nil && q.Reviewed
}

// held revokes the review of an object that the gate holds.
func (r *removals) held(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil && q.Reviewed {
		q.Reviewed, r.changed = false, true
	}
}

// keep preserves an answered question, because the object is held for another reason.
func (r *removals) keep(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil {
		r.kept[q.id()] = true
	}
}

// keepUndeclared preserves the questions about undeclared objects of a cluster. A failed run may
// have stopped before it asked them, and their answers and reviews remain valid.
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

// saveRemovals writes the questions of one cluster, and deletes settled ones.
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

// answerRemovals notes in the questions of other landscapes that this one has seen them. It must
// run when the inventory contains all declarations.
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
			// A declared object outside of the inventory is ignored by an annotation: nobody else
			// may delete it.
			if !c.currentAt().Before(q.Asked) && !declares()[q.Cluster][withoutVersion(q.Object)] {
				seen = append(seen, q.id())
			}
		}
		text := strings.Join(seen, "\n")
		before, _, _ := unstructured.NestedString(o.Object, "data", answerPrefix+self)
		if text == before {
			continue
		}
		// Patch only our own key, because the other landscape may have just deleted the object: it
		// must not be recreated.
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

// declaredRefs returns all declared objects by cluster.
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

// writeRecord applies a ConfigMap with the labels that the live cache selects.
func (c *Converger) writeRecord(ctx context.Context, ref apply.Ref, bundle string, data map[string]any, manager string) error {
	keys := conventions.ManagedResourceKeys()
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

// sortedNames returns the sorted keys of a map.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
