// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"cuelang.org/go/cue"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Input is everything that the components of one owner are rendered from.
type Input struct {
	Owner Owner
	// Objects are the declarations that the owner sees, with API defaults: "garden", "seed",
	// "shoot", "cloudProfile", "project".
	Objects map[string]map[string]any
	Facts   Facts
	// References are facts of the objects that the owner refers to, according to Git. Facts of the
	// cluster take precedence.
	References map[string]ReferenceFact
	// DeclaredReferences returns these objects as Git declares them, if known. Only plans use it;
	// nothing is rendered from it.
	DeclaredReferences map[string]func() *unstructured.Unstructured
	// DeclaredCredentials returns bindings and Secrets by kind, namespace and name as Git declares
	// them; it is nil if unknown. Only a Shoot with Credentials has it.
	DeclaredCredentials func(kind, namespace, name string) *unstructured.Unstructured
	// Extensions are the operator's Extensions by name, in Git and in the cluster. Only a Garden
	// has them.
	Extensions map[string]Extension
	// Charts are the requested charts of Extensions, by reference. A bundle whose chart was not
	// requested is unresolved. If its chart cannot be pulled or rendered, it has a problem, which
	// is an error if ChartsRequired.
	Charts         map[string]Chart
	ChartsRequired bool
	// ResourceChecksums are the known checksums of objects that values of Extensions use, by
	// ReferenceKey.
	ResourceChecksums map[string]string
	// GardenAPI selects the server of the Gardener API in the virtual garden; empty means
	// definitions (landscapev1alpha1.GardenAPICRD).
	GardenAPI landscapev1alpha1.GardenAPI
	// FeatureGates select optional parts; nil means their defaults.
	FeatureGates *landscapev1alpha1.FeatureGates
	// SeedIsGarden means that the Seed's cluster is also the Garden's runtime cluster, where common
	// parts belong to the Garden.
	SeedIsGarden bool
	// TargetVersion is the Kubernetes version of the API server that the components serve; empty
	// means the version of the cluster that they run in.
	TargetVersion string
	// DeclarationPosition is the position of the owner's declaration for errors; it is empty if it
	// has none.
	DeclarationPosition string
	// MutationChanges are the changes that the API makes to the owner's declaration from other
	// objects, besides defaults.
	MutationChanges []mutation.Change
	// OnlyComponents are the components to render, e.g. "shoot/etcd-main"; nil means all.
	OnlyComponents []string
}

// Component is a folder of the catalogue evaluated for one owner.
type Component struct {
	// Path is "<owner kind>/<name>".
	Path      string
	Enabled   bool
	Images    []string
	Secrets   map[string]json.RawMessage
	Facts     []string
	Condition string
	bundles   []bundleSpec
	// chosenImages are the references that the vector has for Images.
	chosenImages map[string]string
	// value is the evaluated component; placements are the owner's settings for namespaces.
	value, placements cue.Value
}

// releaseValues drops the evaluated values. They retain everything that was evaluated with them,
// about a thousand times the size of the result.
func (c *Component) releaseValues() { c.value, c.placements, c.bundles = cue.Value{}, cue.Value{}, nil }

// SecretRequests returns the names of the component's requests in a stable order.
func (c Component) SecretRequests() []string {
	names := make([]string, 0, len(c.Secrets))
	for name := range c.Secrets {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// bundleSpec is the evaluated #Bundle of a component.
type bundleSpec struct {
	Name         string            `json:"name"`
	Cluster      string            `json:"cluster"`
	Direct       bool              `json:"direct"`
	Class        string            `json:"class"`
	Namespace    string            `json:"namespace"`
	Labels       map[string]string `json:"labels"`
	InjectLabels map[string]string `json:"injectLabels"`
	KeepObjects  bool              `json:"keepObjects"`
	ServedBy     string            `json:"servedBy"`
	Condition    string            `json:"condition"`
	source       cue.Value
	// value is the evaluated bundle.
	value cue.Value
}

func cataloguePath(p string) string { return "components/" + strings.TrimPrefix(p, "/") }

// evaluateComponent evaluates one folder. It expects the secret requests of the last owner with
// this component, or the recorded ones, and fills in facts and declarations at once. If the
// requests differ or evaluation fails, a first pass learns the requests and a second one fills in
// the facts.
func (e *evaluator) evaluateComponent(dir string, in *Input, images map[string]string) (Component, error) {
	v, err := e.build(dir, "component")
	if err != nil {
		return Component{}, err
	}
	given, err := e.encodedInput(in, images)
	if err != nil {
		return Component{}, fmt.Errorf("%s: %w", dir, err)
	}
	if expected, known := expectedRequests.get(dir); known {
		if c, err := evaluateWithExpectedSecrets(dir, v, given.FillPath(secretsPath, in.Facts.secretFacts(expected))); err == nil && slices.Equal(c.SecretRequests(), expected) {
			return c, nil
		}
	}
	c, v, err := fillComponent(dir, v, given)
	if err != nil {
		return Component{}, err
	}
	expectedRequests.set(dir, c.SecretRequests())
	if !c.Enabled {
		return c, nil
	}
	v = v.FillPath(secretsPath, in.Facts.secretFacts(c.SecretRequests()))
	if err := v.Err(); err != nil {
		return Component{}, cueError(dir+": facts", err)
	}
	return c, c.decode(v)
}

var secretsPath = cue.ParsePath("facts.secrets")

// evaluateWithExpectedSecrets evaluates a component with the facts of the secrets that it probably
// requests.
func evaluateWithExpectedSecrets(dir string, v, given cue.Value) (Component, error) {
	c, v, err := fillComponent(dir, v, given)
	if err != nil || !c.Enabled {
		return c, err
	}
	return c, c.decode(v)
}

// fillComponent fills values into a component and reads its switch and its secret requests.
func fillComponent(dir string, v, given cue.Value) (Component, cue.Value, error) {
	v = v.Unify(given)
	if err := v.Err(); err != nil {
		return Component{}, v, fmt.Errorf("%s: %w", dir, cueError("fill in the declaration", err))
	}
	c := Component{Path: dir}
	root := v.LookupPath(cue.ParsePath("component"))
	var err error
	if c.Enabled, err = root.LookupPath(cue.ParsePath("enabled")).Bool(); err != nil {
		return Component{}, v, cueError(dir+": component.enabled", err)
	}
	if err := root.LookupPath(cue.ParsePath("secrets")).Decode(&c.Secrets); err != nil {
		return Component{}, v, cueError(dir+": component.secrets", err)
	}
	return c, v, nil
}

func (c *Component) decode(v cue.Value) error {
	root := v.LookupPath(cue.ParsePath("component"))
	c.value, c.placements = root, v.LookupPath(cue.ParsePath("placements"))
	if err := root.LookupPath(cue.ParsePath("images")).Decode(&c.Images); err != nil {
		return cueError(c.Path+": component.images", err)
	}
	if err := root.LookupPath(cue.ParsePath("facts")).Decode(&c.Facts); err != nil {
		return cueError(c.Path+": component.facts", err)
	}
	if err := root.LookupPath(cue.ParsePath("condition")).Decode(&c.Condition); err != nil {
		return cueError(c.Path+": component.condition", err)
	}
	fields, err := root.LookupPath(cue.ParsePath("bundles")).Fields()
	if err != nil {
		return cueError(c.Path+": component.bundles", err)
	}
	for fields.Next() {
		b, err := decodeBundle(fields.Value())
		if err != nil {
			return fmt.Errorf("bundle %s: %w", fields.Selector(), err)
		}
		c.bundles = append(c.bundles, b)
	}
	sort.Slice(c.bundles, func(i, j int) bool { return c.bundles[i].Name < c.bundles[j].Name })
	return nil
}

func decodeBundle(v cue.Value) (bundleSpec, error) {
	var b bundleSpec
	targets := map[string]any{
		"name": &b.Name, "cluster": &b.Cluster, "direct": &b.Direct, "class": &b.Class, "namespace": &b.Namespace,
		"labels": &b.Labels, "injectLabels": &b.InjectLabels, "keepObjects": &b.KeepObjects, "servedBy": &b.ServedBy, "condition": &b.Condition,
	}
	for _, field := range sortedKeys(targets) {
		if err := v.LookupPath(cue.ParsePath(field)).Decode(targets[field]); err != nil {
			return b, cueError(field, err)
		}
	}
	b.value, b.source = v, v.LookupPath(cue.ParsePath("source"))
	if !b.source.Exists() {
		return b, findingAt(v, "no source: want one of cue, helm, kustomize, crds")
	}
	return b, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// ownerKinds are the kinds of owners; each has a folder in the catalogue.
var ownerKinds = []string{"garden", "seed", "shoot"}

// componentDirs lists the component folders of an owner kind.
func componentDirs(catalogue fs.FS, kind string) ([]string, error) {
	entries, err := fs.ReadDir(catalogue, kind)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue of %s: %w", kind, err)
	}
	var dirs []string
	for _, entry := range entries {
		dir := path.Join(kind, entry.Name())
		if !entry.IsDir() {
			continue
		}
		if _, err := fs.Stat(catalogue, path.Join(dir, "component.cue")); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// cueError describes the action and the place, one part per error, without CUE's stack of
// conjuncts. A conflict has two places. The later one is more often the culprit, because the shape
// of a component is declared first.
func cueError(doing string, err error) error {
	var lines []string
	seen := map[string]bool{}
	for _, e := range cueerrors.Errors(err) {
		format, args := e.Msg()
		msg := fmt.Sprintf(format, args...)
		if strings.HasSuffix(msg, "errors in empty disjunction:") {
			continue // the following errors say it
		}
		if p := strings.Join(e.Path(), "."); p != "" {
			msg = p + ": " + msg
		}
		if place := cuePosition(e); place != "" {
			msg = place + ": " + msg
		}
		if !seen[msg] {
			seen[msg] = true
			lines = append(lines, msg)
		}
	}
	return fmt.Errorf("%s: %s", doing, strings.Join(lines, "; "))
}

func cuePosition(e cueerrors.Error) string {
	best := e.Position()
	for _, p := range e.InputPositions() {
		switch {
		case !p.IsValid():
		case !best.IsValid(), isSchema(best), p.Filename() == best.Filename() && p.Line() > best.Line():
			best = p
		}
	}
	if !best.IsValid() {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", best.Filename(), best.Line(), best.Column())
}

// isSchema reports whether a position is in the schema of components or flows, which is rarely the
// place of a mistake.
func isSchema(p token.Pos) bool { return path.Dir(p.Filename()) == "components" }
