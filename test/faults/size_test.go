// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// logMemory logs the usage of the whole test process, including declared and compared objects.
func logMemory(t *testing.T, when string) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	status, _ := os.ReadFile("/proc/self/status")
	peak := ""
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM") {
			peak = strings.Join(strings.Fields(line)[1:], " ")
		}
	}
	t.Logf("memory %s: heap %d MiB, resident at most %s", when, m.HeapAlloc>>20, peak)
}

// logTime logs the time until the state is correct.
func (w *testEnvironment) logTime(t *testing.T, what string, patience time.Duration) {
	w.Helper()
	began := time.Now()
	w.requireCorrectStateWithin(patience)
	t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
	logMemory(t, "after "+what)
}

// TestLargeObject creates, changes, repairs and deletes a ConfigMap near its size limit.
func TestLargeObject(t *testing.T) {
	w := newWorld(t, 5*time.Minute)
	large := func(letter string) []*unstructured.Unstructured {
		out := w.configMaps(2, "")
		out[0].Object["data"] = map[string]any{"large": strings.Repeat(letter+"0123456789abcde", 1<<20/16-1)}
		return out
	}
	w.startEngine("seed")
	w.declareResource("thing", "seed", large("x"))
	w.requireCorrectState()
	w.declareResource("thing", "seed", large("y"))
	w.requireCorrectState()
	w.patch(large("y")[0], "{data: {large: little}}")
	w.requireCorrectState()
	w.deleteResource("thing")
	w.requireCorrectState()
}

// TestManyObjects has many objects in one ManagedResource.
func TestManyObjects(t *testing.T) {
	const n = 5000
	w := newWorld(t, 10*time.Minute)
	logMemory(t, "before")
	w.startEngine("seed")
	w.declareResource("thing", "seed", w.configMaps(n, "1"))
	w.logTime(t, fmt.Sprint("making ", n, " objects"), 4*time.Minute)

	objects := w.configMaps(n, "1")
	objects[n/2] = w.object(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: NS}, data: {key: other}}", n/2))
	w.declareResource("thing", "seed", objects)
	w.logTime(t, "changing one", 2*time.Minute)

	w.allowDeletion(objects[n-n/5:]...)
	w.declareResource("thing", "seed", objects[:n-n/5])
	w.logTime(t, fmt.Sprint("leaving out ", n/5), 4*time.Minute)
	w.deleteResource("thing")
	w.logTime(t, "deleting all", 4*time.Minute)
}

// TestManyManagedResources has many ManagedResources of two objects each.
func TestManyManagedResources(t *testing.T) {
	const n = 2000
	w := newWorld(t, 15*time.Minute)
	objects := func(i int, value string) []*unstructured.Unstructured {
		return w.objects(
			fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: NS}, data: {key: %q}}", i, value),
			fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: s%d, namespace: NS}}", i))
	}
	each := func(do func(i int)) {
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				for i := worker; i < n; i += 8 {
					do(i)
				}
			})
		}
		group.Wait()
	}
	mr := func(i int) string { return fmt.Sprintf("thing-%d", i) }
	w.startEngine("seed", func(s *processOptions) { s.manager.Timing.Workers = 20 })
	each(func(i int) {
		w.writeDataSecret("data-"+mr(i), objects(i, "1"))
		w.create(fmt.Sprintf("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: %s, namespace: NS}, spec: {class: seed, secretRefs: [{name: data-%[1]s}]}}", mr(i)))
	})
	for i := range n {
		w.setWanted(mr(i), "seed", objects(i, "1"))
	}
	w.logTime(t, fmt.Sprint("the last of making ", n), 8*time.Minute)

	each(func(i int) {
		if i%10 == 0 {
			w.writeDataSecret("data-"+mr(i), objects(i, "2"))
		}
	})
	for i := 0; i < n; i += 10 {
		w.setWanted(mr(i), "seed", objects(i, "2"))
	}
	w.logTime(t, "the last of changing a tenth", 4*time.Minute)
	began := time.Now()
	for i := range n {
		w.deleteResource(mr(i))
	}
	t.Logf("it took %s to ask for it", time.Since(began).Round(time.Millisecond))
	w.logTime(t, "the last of deleting all", 8*time.Minute)
}
