// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const benchObjects = 500

// benchSet returns a mix of kinds as in a landscape.
func (f *fixture) benchSet() Set {
	var objects []*unstructured.Unstructured
	for i := range benchObjects {
		name := fmt.Sprintf("o%03d", i)
		switch i % 5 {
		case 0:
			objects = append(objects, f.deployment(name, 1))
		case 1:
			objects = append(objects, f.object(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: NS}, stringData: {a: b}}`, name)))
		case 2:
			objects = append(objects, f.object(fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: NS}}`, name)))
		default:
			objects = append(objects, f.configMap(name, name))
		}
	}
	return f.set(objects...)
}

// applyBarePatches sends the bare patches, 16 at a time, without the engine.
func (f *fixture) applyBarePatches(set Set) {
	bodies := map[*meta.RESTMapping][][2]string{}
	for _, o := range set.Objects {
		mapping, err := f.c.Mapping(f.ctx, o.GroupVersionKind())
		require.NoError(f, err)
		body, err := encodeBody(o)
		require.NoError(f, err)
		bodies[mapping] = append(bodies[mapping], [2]string{o.GetName(), string(body)})
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for mapping, all := range bodies {
		for _, one := range all {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				err := f.c.rest.Patch(types.ApplyYAMLPatchType).AbsPath(pathOf(mapping, f.ns, one[0])...).
					Param("fieldManager", "floor").Param("force", "true").Body([]byte(one[1])).Do(f.ctx).Error()
				if err != nil {
					f.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// wipe deletes the objects of a round, so that the next one starts from the same state.
func (f *fixture) wipe(set Set) {
	f.c.Close()
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range set.Objects {
		kinds[o.GetKind()] = o
	}
	for _, o := range kinds {
		require.NoError(f, f.resource(o).DeleteCollection(f.ctx, deleteNow, metav1.ListOptions{}))
	}
}

// BenchmarkApply500 applies 500 objects to an empty namespace; floor sends the same objects as bare
// patches.
func BenchmarkApply500(b *testing.B) {
	b.Run("engine", func(b *testing.B) {
		requests := 0
		for b.Loop() {
			b.StopTimer()
			f := newFixture(b)
			set := f.benchSet()
			b.StartTimer()
			requests += totalRequests(f.requests(func() { f.mustApply(set) }))
			b.StopTimer()
			f.wipe(set)
			b.StartTimer()
		}
		b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	})
	b.Run("floor", func(b *testing.B) {
		requests := 0
		for b.Loop() {
			b.StopTimer()
			f := newFixture(b)
			set := f.benchSet()
			b.StartTimer()
			requests += totalRequests(f.requests(func() { f.applyBarePatches(set) }))
			b.StopTimer()
			f.wipe(set)
			b.StartTimer()
		}
		b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	})
}

// BenchmarkApplyUnchanged applies unchanged objects again, in the running and in a restarted
// process.
func BenchmarkApplyUnchanged(b *testing.B) {
	f := newFixture(b)
	set := f.benchSet()
	f.mustApply(set)
	b.Run("running", func(b *testing.B) {
		requests := 0
		for b.Loop() {
			requests += totalRequests(f.requests(func() { f.mustApply(set) }))
		}
		b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	})
	b.Run("restarted", func(b *testing.B) {
		requests := 0
		for b.Loop() {
			b.StopTimer()
			f.c = f.cluster()
			f.inv = NewConfigMapInventory(f.c, f.ns, "inventory", nil)
			b.StartTimer()
			requests += totalRequests(f.requests(func() { f.mustApply(set) }))
		}
		b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	})
	b.Run("floor", func(b *testing.B) {
		f.applyBarePatches(set)
		requests := 0
		for b.Loop() {
			requests += totalRequests(f.requests(func() { f.applyBarePatches(set) }))
		}
		b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		b.ReportMetric(benchObjects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	})
}

func totalRequests(r RequestCounts) int {
	n := 0
	for _, v := range r {
		n += v
	}
	return n
}
