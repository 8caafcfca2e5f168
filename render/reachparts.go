package render

import "iter"

// Parts splits the affected owners, at most size at a time and with both sides of each. Rendering
// parts one by one bounds memory for any landscape. It omits the checks between owners.
func (r Reach) Parts(size int) iter.Seq[Reach] {
	return func(yield func(Reach) bool) {
		old := map[Owner]Input{}
		for _, in := range r.Old.Inputs {
			old[in.Owner] = in
		}
		part := r.none()
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
				part = r.none()
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
				part = r.none()
			}
		}
		if len(part.Old.Inputs)+len(part.New.Inputs) > 0 {
			yield(part)
		}
	}
}

// none is the Reach without owners.
func (r Reach) none() Reach {
	r.Old.Inputs, r.New.Inputs, r.Old.Alike, r.New.Alike, r.Same = nil, nil, nil, nil, nil
	return r
}
