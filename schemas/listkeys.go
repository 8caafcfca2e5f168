package schemas

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// listKeyRules come last, so that a rule that says more about a list is the one that is heard.
func listKeyRules() []goRule {
	return []goRule{
		{Rule: Rule{ID: "any/list-keys", Kind: "*", Title: "An item of a list that is told apart by a key is given once",
			Doc:    "The API merges such lists item by item and refuses two items with one key. In Go, because the lists are those of the definitions.",
			Source: "x-kubernetes-list-type and x-kubernetes-list-map-keys of api/crds", Fields: []string{""}, In: "go", Severity: SeverityError, Scope: scopeObject}, check: listKeys},
	}
}

func listKeys(in ruleInput) []finding {
	var findings []finding
	doubles(in.kind.Root, in.object, "", &findings)
	return findings
}

// doubles walks a value along its schema. Values of a wrong type are left to the structure.
func doubles(n *structure.Node, value any, path string, findings *[]finding) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			inner := n.Properties[name]
			place := strings.TrimPrefix(path+"."+name, ".")
			if inner == nil {
				inner, place = n.Additional, path+"["+name+"]"
			}
			if inner != nil {
				doubles(inner, child, place, findings)
			}
		}
	case []any:
		seen := map[string]int{}
		for i, item := range value {
			place := fmt.Sprintf("%s[%d]", path, i)
			if key, ok := itemKey(n, item); ok {
				if first, double := seen[key]; double {
					if len(n.ListKeys) == 1 {
						place += "." + n.ListKeys[0]
					}
					*findings = append(*findings, finding{path: place, typ: TypeDuplicate,
						message: fmt.Sprintf("is given already by %s[%d]; items of this list are told apart by it", path, first)})
				} else {
					seen[key] = i
				}
			}
			if n.Items != nil {
				doubles(n.Items, item, fmt.Sprintf("%s[%d]", path, i), findings)
			}
		}
	}
}

// itemKey is what an item is told apart by; not ok where items may be equal, or a key is missing.
func itemKey(n *structure.Node, item any) (string, bool) {
	switch n.ListType {
	case "set":
		return fmt.Sprintf("%T %v", item, item), true
	case "map":
		object, ok := item.(map[string]any)
		if !ok {
			return "", false
		}
		var key strings.Builder
		for _, name := range n.ListKeys {
			value, found := object[name]
			if !found && n.Items != nil && n.Items.Properties[name] != nil {
				value = n.Items.Properties[name].Default
			}
			fmt.Fprintf(&key, "%T %v\n", value, value)
		}
		return key.String(), true
	}
	return "", false
}
