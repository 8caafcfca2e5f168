// SPDX-License-Identifier: Apache-2.0

package strict

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed kubernetes.tsv
var tableText string

// table holds facts that are not in Go types, by "type<TAB>field"; an enumeration has no field.
type table struct {
	// keys are the keys of list items; an empty list means a set.
	keys  map[string][]string
	enums map[string][]string
	// since are the minor releases of Kubernetes that introduced a field or, with an empty field, a
	// kind. Fields and kinds of the oldest known release have no entry.
	since map[string]int
}

// kubernetesTable is the generated table; tests read it, too.
var kubernetesTable = sync.OnceValue(func() table { return parseTable(tableText) })

func parseTable(text string) table {
	t := table{keys: map[string][]string{}, enums: map[string][]string{}, since: map[string]int{}}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 4 {
			continue // the header
		}
		place := cells[0] + "\t" + cells[1]
		switch cells[2] {
		case "keys":
			t.keys[place] = strings.Split(cells[3], ",")
		case "set":
			t.keys[place] = []string{}
		case "enum":
			t.enums[cells[0]] = strings.Split(cells[3], ",")
		case "since":
			minor, err := strconv.Atoi(cells[3])
			if err != nil {
				panic(fmt.Sprintf("kubernetes.tsv: %s: %v", line, err)) // the generator wrote it
			}
			t.since[place] = minor
		}
	}
	return t
}
