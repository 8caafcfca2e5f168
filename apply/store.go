// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ChangeEvent is a change of a cached object: Old is nil if the object is new, New if it was
// deleted. The objects are shared and must not be modified.
type ChangeEvent struct {
	Ref      Ref
	Old, New *unstructured.Unstructured
}

// store holds the objects of one resource: the results of list and watch, overlaid by the answers
// to our own writes. Resource versions decide which is newer, so their order of arrival does not
// matter. It implements cache.ReflectorStore.
type store struct {
	selector labels.Selector
	emit     func(ChangeEvent)
	onList   func()
	// shrink makes objects of the server small; if nil, only their managedFields become text.
	shrink func(*unstructured.Unstructured) *unstructured.Unstructured

	orderMu sync.Mutex // held while handlers run, so that events keep their order
	mu      sync.RWMutex
	objects map[nsName]*unstructured.Unstructured
	digests map[nsName]cachedDigest
	dropped map[nsName]cachedDroppedFields
	fields  fieldSetTexts
	// deletedVersions has the resource version of each deletion: the answer to a write may arrive
	// later.
	deletedVersions map[nsName]string
}

// maxRememberedDeletions bounds the memory of deletions, which matter only for moments.
const maxRememberedDeletions = 10000

func (s *store) trimObject(o *unstructured.Unstructured) *unstructured.Unstructured {
	if s.shrink != nil {
		return s.shrink(o)
	}
	return s.fields.compact(o)
}

func (s *store) get(n nsName) *unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[n]
}

func (s *store) list(visit func(*unstructured.Unstructured)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, o := range s.objects {
		visit(o)
	}
}

// cachedDigest is a liveDigest and its inputs.
type cachedDigest struct{ version, manager, createOnly, digest string }

// digest is liveDigest, computed once per version of an object.
func (s *store) digest(o *unstructured.Unstructured, manager string, createOnly []string) string {
	d := cachedDigest{version: o.GetResourceVersion(), manager: manager, createOnly: strings.Join(createOnly, ",")}
	s.mu.RLock()
	have := s.digests[nameOf(o)]
	s.mu.RUnlock()
	if d.digest = have.digest; d == have {
		return d.digest
	}
	d.digest = liveDigest(o, manager, createOnly)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digests == nil {
		s.digests = map[nsName]cachedDigest{}
	}
	if have := s.objects[nameOf(o)]; have != nil && have.GetUID() == o.GetUID() && have.GetResourceVersion() == d.version {
		s.digests[nameOf(o)] = d
	}
	return d.digest
}

// cachedDroppedFields are droppedFields and their inputs.
type cachedDroppedFields struct {
	version, manager, applied string
	fields                    []droppedField
}

// droppedFields returns the result of find, computed once per version of an object and applied
// digest.
func (s *store) droppedFields(o *unstructured.Unstructured, manager, applied string, find func() []droppedField) []droppedField {
	s.mu.RLock()
	have := s.dropped[nameOf(o)]
	s.mu.RUnlock()
	version := o.GetResourceVersion()
	if version != "" && have.version == version && have.manager == manager && have.applied == applied {
		return have.fields
	}
	fields := find()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped == nil {
		s.dropped = map[nsName]cachedDroppedFields{}
	}
	if have := s.objects[nameOf(o)]; have != nil && have.GetUID() == o.GetUID() && have.GetResourceVersion() == version {
		s.dropped[nameOf(o)] = cachedDroppedFields{version, manager, applied, fields}
	}
	return fields
}

// storeResponse stores the answer to a write.
func (s *store) storeResponse(o *unstructured.Unstructured) {
	if s.selector.Matches(labels.Set(o.GetLabels())) {
		_ = s.Add(o)
	}
}

// forget drops an object whose deletion the server confirmed.
func (s *store) forget(o *unstructured.Unstructured) {
	s.remove(o, func(have *unstructured.Unstructured) bool { return have.GetUID() == o.GetUID() })
}

// Add stores an object that the watch reported, unless a newer one is known.
func (s *store) Add(obj any) error {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	o = s.trimObject(o)
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.mu.Lock()
	old := s.objects[nameOf(o)]
	gone, was := s.deletedVersions[nameOf(o)]
	if old != nil && !isNewerVersion(o.GetResourceVersion(), old.GetResourceVersion()) || was && !isNewerVersion(o.GetResourceVersion(), gone) {
		s.mu.Unlock()
		return nil
	}
	s.objects[nameOf(o)] = o
	delete(s.deletedVersions, nameOf(o))
	s.mu.Unlock()
	s.emit(ChangeEvent{Ref: RefOf(o), Old: old, New: o})
	return nil
}

// Update is Add.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete drops an object that the watch reported as deleted, unless it was created again since.
func (s *store) Delete(obj any) error {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	s.remove(o, func(have *unstructured.Unstructured) bool {
		return !isNewerVersion(have.GetResourceVersion(), o.GetResourceVersion())
	})
	return nil
}

func (s *store) remove(o *unstructured.Unstructured, when func(have *unstructured.Unstructured) bool) {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	s.mu.Lock()
	old := s.objects[nameOf(o)]
	if old != nil && !when(old) {
		s.mu.Unlock()
		return
	}
	if len(s.deletedVersions) >= maxRememberedDeletions || s.deletedVersions == nil {
		s.deletedVersions = map[nsName]string{}
	}
	s.deletedVersions[nameOf(o)] = o.GetResourceVersion()
	if old == nil {
		s.mu.Unlock()
		return
	}
	delete(s.objects, nameOf(o))
	delete(s.digests, nameOf(o))
	delete(s.dropped, nameOf(o))
	s.mu.Unlock()
	s.emit(ChangeEvent{Ref: RefOf(o), Old: old})
}

// Replace stores a new list; objects that we wrote after the list stay.
func (s *store) Replace(list []any, version string) error {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	var events []ChangeEvent
	next := make(map[nsName]*unstructured.Unstructured, len(list))
	s.mu.Lock()
	for _, item := range list {
		o, ok := item.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		old := s.objects[nameOf(o)]
		if old != nil && !isNewerVersion(o.GetResourceVersion(), old.GetResourceVersion()) {
			next[nameOf(o)] = old
			continue
		}
		o = s.trimObject(o)
		next[nameOf(o)] = o
		events = append(events, ChangeEvent{Ref: RefOf(o), Old: old, New: o})
	}
	for n, old := range s.objects {
		if next[n] != nil {
			continue
		}
		if isNewerVersion(old.GetResourceVersion(), version) {
			next[n] = old
			continue
		}
		delete(s.digests, n)
		delete(s.dropped, n)
		events = append(events, ChangeEvent{Ref: RefOf(old), Old: old})
	}
	s.objects = next
	s.mu.Unlock()
	for _, e := range events {
		s.emit(e)
	}
	s.onList()
	return nil
}

// Resync does nothing: nothing is derived from the store.
func (s *store) Resync() error { return nil }

// isNewerVersion reports whether a resource version is newer; versions that cannot be compared
// count as newer.
func isNewerVersion(a, b string) bool {
	d, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || d > 0
}
