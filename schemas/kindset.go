// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// kindSet reads the schemas of kinds on first use, so that validating one Shoot reads one schema.
type kindSet struct {
	gvks []schema.GroupVersionKind
	// readKinds returns the schema of a kind, and perhaps of others.
	readKinds func(schema.GroupVersionKind) (structure.Kinds, error)

	mutex sync.Mutex
	kinds structure.Kinds
}

func newKindSet(known []schema.GroupVersionKind, read func(schema.GroupVersionKind) (structure.Kinds, error)) *kindSet {
	sorted := slices.SortedFunc(slices.Values(known), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return &kindSet{gvks: sorted, readKinds: read, kinds: structure.Kinds{}}
}

func (s *kindSet) has(gvk schema.GroupVersionKind) bool { return slices.Contains(s.gvks, gvk) }

// get returns the schema of a kind, or nil if the set does not have it.
func (s *kindSet) get(gvk schema.GroupVersionKind) (*structure.Kind, error) {
	if !s.has(gvk) {
		return nil, nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if kind := s.kinds[gvk]; kind != nil {
		return kind, nil
	}
	found, err := s.readKinds(gvk)
	if err != nil {
		return nil, err
	}
	for read, kind := range found {
		if s.kinds[read] == nil {
			s.kinds[read] = kind
		}
	}
	if s.kinds[gvk] == nil {
		return nil, fmt.Errorf("there is no schema of %s", gvk)
	}
	return s.kinds[gvk], nil
}

// all returns all kinds, sorted.
func (s *kindSet) all() ([]*structure.Kind, error) {
	list := make([]*structure.Kind, 0, len(s.gvks))
	for _, gvk := range s.gvks {
		kind, err := s.get(gvk)
		if err != nil {
			return nil, err
		}
		list = append(list, kind)
	}
	return list, nil
}
