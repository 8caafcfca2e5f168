// SPDX-License-Identifier: Apache-2.0

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

// configMapRef is the kind of the landscapes' records.
var configMapRef = apply.Ref{APIVersion: "v1", Kind: "ConfigMap"}

// managerRecords writes the records that are not inventories.
const managerRecords = "pergola-records"

const (
	questionsKey = "questions.json"
	// answerPrefix starts the keys with the questions that another landscape has seen.
	answerPrefix = "seen-by."
)

// removalQuestion is about an object that a landscape no longer declares.
type removalQuestion struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// AskedAt distinguishes successive removals of an object.
	AskedAt time.Time `json:"asked"`
	// Reviewed means that a review has shown the deletion. It is valid until the others have
	// answered, across commits and restarts.
	Reviewed bool `json:"reviewed,omitempty"`
}

func (q removalQuestion) id() string {
	return fmt.Sprintf("%s %s %s %s", q.Cluster, q.Object.GroupKind(), q.Object, q.AskedAt.UTC().Format(time.RFC3339Nano))
}

// removalQuestions are the questions of one landscape, and the answers.
type removalQuestions struct {
	now       time.Time
	questions []removalQuestion
	answers   map[string]map[string]bool // by landscape and question
	preserved map[string]bool            // asked in this run as well
	isStored  bool
	isChanged bool // beyond added or removed questions
}

func parseQuestions(o *unstructured.Unstructured) []removalQuestion {
	text, _, _ := unstructured.NestedString(o.Object, "data", questionsKey)
	var out []removalQuestion
	// Only a person writes unreadable questions: they are repeated.
	_ = json.Unmarshal([]byte(text), &out)
	return out
}

// readRemovalQuestions returns the questions of this landscape, without a request.
func (c *Converger) readRemovalQuestions(ctx context.Context) (*removalQuestions, error) {
	out := &removalQuestions{now: c.options.Clock.Now(), answers: map[string]map[string]bool{}, preserved: map[string]bool{}}
	live, err := c.connections.clusters[Runtime].Get(ctx, c.removalQuestionsRef(c.landscape.Config.Name))
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("removals of landscape %s: %w", c.landscape.Config.Name, c.connections.clusters[Runtime].Explain(c.removalQuestionsRef(c.landscape.Config.Name), "read", err))
	}
	out.isStored, out.questions = true, parseQuestions(live)
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	for key, text := range data {
		if name, is := strings.CutPrefix(key, answerPrefix); is {
			out.answers[name] = map[string]bool{}
			for line := range strings.Lines(text) {
				out.answers[name][strings.TrimSpace(line)] = true
			}
		}
	}
	return out, nil
}

func (c *Converger) removalQuestionsRef(landscape string) apply.Ref {
	ref := configMapRef
	ref.Namespace, ref.Name = owner.InventoryNamespace, inventoryName(landscape, removalsBundle)
	return ref
}

func (r *removalQuestions) find(cluster string, ref apply.Ref) *removalQuestion {
	for i, q := range r.questions {
		if q.Cluster == cluster && versionlessRef(q.Object) == versionlessRef(ref) {
			return &r.questions[i]
		}
	}
	return nil
}

func (r *removalQuestions) isAnswered(cluster string, ref apply.Ref, by string) bool {
	q := r.find(cluster, ref)
	return q != nil && r.answers[by][q.id()]
}

// addQuestion adds a question about an object; reviewed means that a review has shown its deletion.
func (r *removalQuestions) addQuestion(cluster string, ref apply.Ref, reviewed bool) {
	q := r.find(cluster, ref)
	if q == nil {
		r.questions = append(r.questions, removalQuestion{Cluster: cluster, Object: ref, AskedAt: r.now})
		q = &r.questions[len(r.questions)-1]
	}
	r.preserved[q.id()] = true
	if reviewed && !q.Reviewed {
		q.Reviewed, r.isChanged = true, true
	}
}

// isReviewed reports whether a review has shown the deletion of a questioned object.
func (r *removalQuestions) isReviewed(cluster string, ref apply.Ref) bool {
	q := r.find(cluster, ref)
	return q != nil && q.Reviewed
}

// revokeReview revokes the review of an object that the gate holds.
func (r *removalQuestions) revokeReview(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil && q.Reviewed {
		q.Reviewed, r.isChanged = false, true
	}
}

// preserve preserves an answered question, because the object is held for another reason.
func (r *removalQuestions) preserve(cluster string, ref apply.Ref) {
	if q := r.find(cluster, ref); q != nil {
		r.preserved[q.id()] = true
	}
}

// preserveUndeclared preserves the questions about undeclared objects of a cluster. A failed run
// may have stopped before it asked them, and their answers and reviews remain valid.
func (r *removalQuestions) preserveUndeclared(cluster string, declared []*unstructured.Unstructured) {
	again := map[apply.Ref]bool{}
	for _, o := range declared {
		again[versionlessRef(apply.RefOf(o))] = true
	}
	for _, q := range r.questions {
		if q.Cluster == cluster && !again[versionlessRef(q.Object)] {
			r.preserved[q.id()] = true
		}
	}
}

// saveRemovalQuestions writes the questions of one cluster, and deletes settled ones.
func (c *Converger) saveRemovalQuestions(ctx context.Context, cluster string, r *removalQuestions) error {
	before := len(r.questions)
	asked := slices.DeleteFunc(slices.Clone(r.questions), func(q removalQuestion) bool { return q.Cluster == cluster && !r.preserved[q.id()] })
	if len(asked) == before && !r.isChanged && !slices.ContainsFunc(asked, func(q removalQuestion) bool { return q.AskedAt.Equal(r.now) }) {
		return nil
	}
	ref := c.removalQuestionsRef(c.landscape.Config.Name)
	if len(asked) == 0 {
		if !r.isStored {
			return nil
		}
		err := c.configMapClient().Delete(ctx, ref.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return c.connections.clusters[Runtime].Explain(ref, "delete", err)
		}
		return nil
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	return c.writeRecord(ctx, ref, removalsBundle, map[string]any{questionsKey: string(text)}, managerRecords)
}

// answerRemovalQuestions notes in the questions of other landscapes that this one has seen them. It
// must run when the inventory contains all declarations.
func (c *Converger) answerRemovalQuestions(ctx context.Context) error {
	all, err := c.landscapeConfigMaps(ctx)
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
		for _, q := range parseQuestions(o) {
			// A declared object outside of the inventory is ignored by an annotation: no one else
			// may delete it.
			if !c.filesConfirmedAt().Before(q.AskedAt) && !declares()[q.Cluster][versionlessRef(q.Object)] {
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
			return c.connections.clusters[Runtime].Explain(c.removalQuestionsRef(name), "answer", err)
		}
	}
	return nil
}

// declaredRefs returns all declared objects by cluster.
func (c *Converger) declaredRefs() map[string]map[apply.Ref]bool {
	out := map[string]map[apply.Ref]bool{}
	for cluster, d := range splitByCluster(c.landscape) {
		out[cluster] = map[apply.Ref]bool{}
		for ref := range d.sources {
			out[cluster][versionlessRef(ref)] = true
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
		return c.connections.clusters[Runtime].Explain(ref, "write", err)
	}
	return nil
}

func (c *Converger) configMapClient() dynamic.ResourceInterface {
	return c.connections.clusters[Runtime].Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(owner.InventoryNamespace)
}

// sortedKeys returns the sorted keys of a map.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
