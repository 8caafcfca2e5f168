package landscapes

import (
	"regexp"
	"slices"

	"github.com/pergola-dev/pergola/schemas/across"
)

// Where a text that is neither YAML nor JSON seems to say what it is.
var (
	seemingKind = regexp.MustCompile(`(?m)(?:^|[\s{,])["']?kind["']?\s*:\s*["']?([A-Za-z]+)`)
	seemingName = regexp.MustCompile(`(?m)(?:^|[\s{,])["']?name["']?\s*:\s*["']?([a-z0-9][-.a-z0-9]*)`)
)

// seeming are the objects that a document may be about which cannot be read: whoever refers to one of them is not told that there is none, since
// the document has a finding already. It is known too little of it to tell names of the object from others in it.
func (d document) seeming() []across.External {
	var out []across.External
	names := unique(seemingName, d.data)
	for _, kind := range unique(seemingKind, d.data) {
		for _, name := range names {
			out = append(out, across.External{Kind: kind, Namespace: "*", Name: name})
		}
	}
	return out
}

// unique are what the first group of an expression finds.
func unique(find *regexp.Regexp, in []byte) []string {
	var out []string
	for _, match := range find.FindAllSubmatch(in, -1) {
		out = append(out, string(match[1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
