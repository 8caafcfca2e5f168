// SPDX-License-Identifier: Apache-2.0

package render

import "iter"

// Split splits the affected owners, at most size at a time and with both sides of each. Rendering
// parts one by one bounds memory for any landscape. It omits the checks between owners.
func (r Affected) Split(size int) iter.Seq[Affected] {
	return func(yield func(Affected) bool) {
		old := map[Owner]Input{}
		for _, in := range r.Old.Inputs {
			old[in.Owner] = in
		}
		part := r.withoutOwners()
		for _, in := range r.New.Inputs {
			part.New.Inputs = append(part.New.Inputs, in)
			if before, ok := old[in.Owner]; ok {
				part.Old.Inputs = append(part.Old.Inputs, before)
				delete(old, in.Owner)
			}
			if len(part.New.Inputs) == size {
				if !yield(part) {
					return
				}
				part = r.withoutOwners()
			}
		}
		for _, in := range r.Old.Inputs {
			if _, gone := old[in.Owner]; !gone {
				continue
			}
			part.Old.Inputs = append(part.Old.Inputs, in)
			if len(part.Old.Inputs) >= size {
				if !yield(part) {
					return
				}
				part = r.withoutOwners()
			}
		}
		if len(part.Old.Inputs)+len(part.New.Inputs) > 0 {
			yield(part)
		}
	}
}

// withoutOwners is the Reach without owners.
func (r Affected) withoutOwners() Affected {
	r.Old.Inputs, r.New.Inputs, r.Old.EqualShoots, r.New.EqualShoots, r.Unaffected = nil, nil, nil, nil, nil
	return r
}
