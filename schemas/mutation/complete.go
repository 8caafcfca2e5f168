package mutation

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/schemas"
)

// Complete gives the inputs of a landscape as the API shows them, and what it would refuse, with its place. The inputs stay as
// they are. Objects that are being removed are not touched. The content of all others is read. The error is a fault of a
// mutation.
func (s *Surroundings) Complete(inputs []schemas.Input) ([]schemas.Input, []schemas.Violation, error) {
	out := slices.Clone(inputs)
	var refused []schemas.Violation
	for i := range out {
		if !out[i].Declared() {
			continue
		}
		object, result, err := s.Apply(out[i].Content(), out[i].OldContent())
		if err != nil {
			kind, _, name := out[i].Identity()
			return nil, nil, fmt.Errorf("filling in %s %s: %w", kind.Kind, name, err)
		}
		if len(result.Changes) > 0 {
			out[i].Object, out[i].Later = object, nil
		}
		for _, v := range result.Problems {
			if out[i].Positions != nil {
				p := out[i].Positions.Position(v.Field)
				v.File, v.Line, v.Column = p.File, p.Line, p.Column
			}
			refused = append(refused, v)
		}
	}
	schemas.Sort(refused)
	return out, refused, nil
}
