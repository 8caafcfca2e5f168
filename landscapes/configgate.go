// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/schemas"
)

// checkProtectedKinds finds misspelt kinds, which would protect nothing. It accepts any kind of an
// unknown group.
func (l *loader) checkProtectedKinds(config *Declaration, spec map[string]any) {
	gate, _ := spec["deletionGate"].(map[string]any)
	list, _ := gate["protectedKinds"].([]any)
	if len(list) == 0 {
		return
	}
	byGroup := protectableKinds()
	var all []string
	for _, kinds := range byGroup {
		all = append(all, kinds...)
	}
	slices.Sort(all)
	seen := map[string]bool{}
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			continue
		}
		field := fmt.Sprintf("spec.deletionGate.protectedKinds[%d]", i)
		if seen[text] {
			l.reportField(config, field, schemas.TypeDuplicate, ruleConfig, fmt.Sprintf("%q is listed twice", text))
		}
		seen[text] = true
		kind, group, hasGroup := strings.Cut(text, ".")
		kinds, known := byGroup[group]
		switch {
		case !hasGroup && !slices.Contains(all, kind):
			l.reportField(config, field, schemas.TypeNotSupported, ruleConfig,
				fmt.Sprintf("%q is not a known kind%s; write KIND.GROUP for kinds of other APIs", text, didYouMean(kind, all)))
		case hasGroup && known && !slices.Contains(kinds, kind):
			l.reportField(config, field, schemas.TypeNotSupported, ruleConfig, fmt.Sprintf("the group %q has no kind %q%s", group, kind, didYouMean(kind, kinds)))
		case hasGroup && (kind == "" || !known && !strings.Contains(group, ".")):
			l.reportField(config, field, schemas.TypeInvalid, ruleConfig, fmt.Sprintf("%q is neither KIND nor KIND.GROUP, such as Etcd.druid.gardener.cloud", text))
		}
	}
}

// protectableKinds returns the kinds of Kubernetes and Gardener by group.
func protectableKinds() map[string][]string {
	kinds := map[string][]string{
		"apiextensions.k8s.io":   {"CustomResourceDefinition"},
		"apiregistration.k8s.io": {"APIService"},
		"druid.gardener.cloud":   {"Etcd", "EtcdCopyBackupsTask"},
	}
	add := func(group, kind string) {
		if !slices.Contains(kinds[group], kind) {
			kinds[group] = append(kinds[group], kind)
		}
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" && !strings.HasSuffix(gvk.Kind, "List") && !strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "WatchEvent" {
			add(gvk.Group, gvk.Kind)
		}
	}
	for gv, names := range knownKinds() {
		for _, name := range names {
			add(gv.Group, name)
		}
	}
	return kinds
}
