package render

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// RecordedFacts reads the facts file of a landscape: facts by owner, e.g. "garden local". All that is wrong with it is
// part of the error, with its place.
func RecordedFacts(l *landscapes.Landscape) (map[string]Facts, error) {
	name := l.Config.Spec.Facts
	if name == "" {
		return nil, nil
	}
	raw, err := fs.ReadFile(l.FS, path.Join(l.Path, name))
	if err != nil {
		at := configPosition(l, "spec.facts")
		return nil, finding{Position: at, field: "spec.facts", kind: schemas.TypeInvalid, rule: ruleFacts, message: fmt.Sprintf("there is no file %q that can be read", name)}
	}
	file, err := readYAMLFile(path.Clean(name), raw)
	if err != nil {
		return nil, ruled(err, ruleFacts)
	}
	if found := file.checkShape(reflect.TypeFor[map[string]Facts]()); len(found) > 0 {
		return nil, ruled(found.err(), ruleFacts)
	}
	var facts map[string]Facts
	if err := yaml.UnmarshalStrict(raw, &facts); err != nil {
		return nil, finding{Position: file.position(""), kind: schemas.TypeInvalid, rule: ruleFacts, message: firstLine(err.Error())}
	}
	return facts, ruled(checkFacts(file, facts, ownerNames(l)).err(), ruleFacts)
}

// checkFacts finds facts about nobody and nothing.
func checkFacts(file yamlFile, facts map[string]Facts, owners []string) findings {
	var out findings
	report := func(path fieldpath.Path, kind schemas.Type, format string, args ...any) {
		out = append(out, finding{Position: file.position(path.String()), field: path.String(), kind: kind, message: fmt.Sprintf(format, args...)})
	}
	roles := []string{ClusterRuntime, ClusterVirtual, ClusterSeed, ClusterShoot}
	for _, owner := range sortedKeys(facts) {
		at := fieldpath.Path{fieldpath.Key(owner)}
		if !slices.Contains(owners, owner) {
			hint := ""
			if guess := schemas.Suggest(owner, owners); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			} else if len(owners) > 0 {
				hint = ", which has " + strings.Join(owners[:min(8, len(owners))], ", ")
			}
			report(at, schemas.TypeNotSupported, "there is no %s in this landscape%s", owner, hint)
		}
		clusters := facts[owner].Clusters
		for _, role := range sortedKeys(clusters) {
			if !slices.Contains(roles, role) {
				report(at.Append("clusters", fieldpath.Key(role)), schemas.TypeNotSupported, "no role of a cluster: it is one of %s", strings.Join(roles, ", "))
			}
			if version := clusters[role].KubernetesVersion; version != "" {
				if _, err := semver.NewVersion(version); err != nil {
					report(at.Append("clusters", fieldpath.Key(role), "kubernetesVersion"), schemas.TypeInvalid, "%q is no version of Kubernetes such as %s", version, DefaultKubernetesVersion)
				}
			}
		}
	}
	return out
}

// ownerNames are the names of the owners a landscape declares, bound or not.
func ownerNames(l *landscapes.Landscape) []string {
	var out []string
	for _, d := range l.Declarations {
		switch kind := d.GroupVersionKind().Kind; kind {
		case "Garden", "Seed", "Shoot":
			out = append(out, Owner{Kind: strings.ToLower(kind), Namespace: d.Namespace(), Name: d.Name()}.String())
		}
	}
	return out
}
