// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"cuelang.org/go/cue"

	"github.com/pergola-dev/pergola/schemas"
)

// Result is the outcome of rendering one owner's components.
type Result struct {
	Bundles []Bundle
	// Components are all evaluated ones, including disabled ones.
	Components []Component
}

// Secrets collects the requests of all enabled components. Two components may request the same
// secret only with equal requests.
func (r Result) Secrets() (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	from := map[string]string{}
	for _, c := range r.Components {
		if !c.Enabled {
			continue
		}
		for name, request := range c.Secrets {
			if known, ok := out[name]; ok && !isSameJSON(known, request) {
				return nil, fmt.Errorf("components %s and %s ask for secret %s in different ways", from[name], c.Path, name)
			}
			out[name], from[name] = request, c.Path
		}
	}
	return out, nil
}

// isSameJSON compares content: CUE writes fields in the order of the component.
func isSameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Render renders every enabled component of the owner's catalogue. It reports all errors, not only
// the first; the result has everything that renders.
func Render(in Input, opts Options) (Result, error) {
	results, errs := renderOwners([]Input{in}, opts)
	return results[0], errs[0]
}

// RenderEach is Render for several owners, in their order. It evaluates a component once for
// several owners.
func RenderEach(inputs []Input, opts Options) ([]Result, []error) { return renderOwners(inputs, opts) }

// renderOwners renders the components of all owners in parallel. The result for each owner has the
// same order as a sequential render.
func renderOwners(inputs []Input, opts Options) ([]Result, []error) {
	p := newPending(inputs, opts)
	runTasks(opts, p.tasks)
	return p.results()
}

// pendingOwners are owners to render.
type pendingOwners struct {
	inputs []Input
	tasks  []*task
	errs   []error
}

func newPending(inputs []Input, opts Options) *pendingOwners {
	p := &pendingOwners{inputs: inputs, errs: make([]error, len(inputs))}
	if opts.kinds == nil {
		opts.kinds = newKindSchemas(opts)
	}
	for i := range inputs {
		var found []*task
		found, p.errs[i] = tasksOf(&inputs[i], &opts)
		p.tasks = append(p.tasks, found...)
	}
	return p
}

// results returns the results of the owners after the tasks have run.
func (p *pendingOwners) results() ([]Result, []error) {
	byOwner := map[*Input][]*task{}
	for _, t := range p.tasks {
		byOwner[t.in] = append(byOwner[t.in], t)
	}
	results, errs := make([]Result, len(p.inputs)), slices.Clone(p.errs)
	for i := range p.inputs {
		if errs[i] == nil {
			results[i], errs[i] = collectResult(byOwner[&p.inputs[i]])
		}
	}
	return results, errs
}

// collectResult combines the components of one owner.
func collectResult(tasks []*task) (Result, error) {
	var result Result
	var problems []error
	for _, t := range tasks {
		if t.err != nil {
			problems = append(problems, taskError(t))
			continue
		}
		result.Components = append(result.Components, t.component)
		result.Bundles = append(result.Bundles, t.bundles...)
		for _, b := range t.bundles {
			if b.Problem != "" && t.in.ChartsRequired {
				problems = append(problems, fmt.Errorf("%s, bundle %s: %s", t.in.Owner, b.Name, b.Problem))
			}
		}
	}
	problems = append(problems, duplicateBundles(result.Bundles)...)
	problems = append(problems, duplicateObjectsAcrossBundles(result.Bundles, func(b Bundle) string { return b.Cluster }, true)...)
	sortBundles(result.Bundles)
	return result, errors.Join(problems...)
}

// taskError names the owner of a failing component. CUE names only positions in the catalogue, even
// if a value of a declaration is to blame.
func taskError(t *task) error {
	if t.in.DeclarationPosition == "" || len(findingsIn(t.err)) > 0 {
		return fmt.Errorf("%s, component %s: %w", t.in.Owner, t.dir, t.err)
	}
	return fmt.Errorf("%s (declared in %s), component %s: %w", t.in.Owner, t.in.DeclarationPosition, t.dir, t.err)
}

func renderComponent(eval *evaluator, dir string, in *Input, images map[string]string, opts Options) (Component, []Bundle, error) {
	c, err := eval.evaluateComponent(dir, in, images)
	if err != nil {
		return c, nil, err
	}
	if enabled, ok := opts.Enabled[dir]; ok && !enabled {
		c.Enabled = false
	} else if ok && enabled && !c.Enabled {
		return c, nil, finding{
			Position: opts.enabledPositions[dir], kind: schemas.TypeInvalid, rule: ruleCatalogue,
			message: "the landscape enables it, but the declaration does not ask for it: change the declaration",
		}
	}
	if !c.Enabled {
		return c, nil, nil
	}
	var missing findings
	c.chosenImages = map[string]string{}
	for i, name := range c.Images {
		c.chosenImages[name] = images[name]
		if _, ok := images[name]; !ok {
			place := c.value.LookupPath(cue.MakePath(cue.Str("images"), cue.Index(i)))
			missing = append(missing, findingAt(place, "image %s is not in the image vector for these Kubernetes versions", name))
		}
	}
	if len(missing) > 0 {
		return c, nil, missing.err()
	}
	bundles, err := c.render(*in, opts)
	return c, bundles, err
}

// render runs the engines, then the steps that are common to all of them.
func (c Component) render(in Input, opts Options) ([]Bundle, error) {
	bundles := make([]Bundle, 0, len(c.bundles))
	var without []Bundle // objects
	for _, spec := range c.bundles {
		objects, err := renderSource(opts.Catalogue, c.Path, in, spec)
		if err == nil && spec.source.LookupPath(registryChartPath).Exists() {
			err = opts.newObjectCheck(&in).checkChart(objects, spec.Cluster)
		}
		if problem, ok := errors.AsType[*chartError](err); ok {
			b := newBundle(c, in, spec, nil)
			if !problem.notRequested {
				b.Problem = problem.text
			}
			if err := b.SetDigest(problem.text); err != nil {
				return nil, err
			}
			without = append(without, b)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", spec.Name, err)
		}
		if spec.source.LookupPath(cue.ParsePath("kustomize")).Exists() {
			setVectorImages(objects, c.chosenImages)
		}
		bundles = append(bundles, newBundle(c, in, spec, objects))
	}
	declared := declaredReplicas(bundles)
	for _, overlay := range opts.Overlays {
		if overlay.Component == c.Path {
			if err := applyOverlay(overlay, bundles, opts.newObjectCheck(&in), opts.probes[overlay.Name]); err != nil {
				return nil, err
			}
		}
	}
	if err := c.finishBundles(bundles, declared); err != nil {
		return nil, err
	}
	if !opts.skipChecks {
		if err := opts.newObjectCheck(&in).checkBundles(bundles); err != nil {
			return nil, err
		}
	}
	for i := range bundles {
		if len(bundles[i].Objects) == 0 {
			return nil, findingAt(c.sourceOf(bundles[i].Name), "bundle %s rendered no object: disable the component instead", bundles[i].Name)
		}
		if err := bundles[i].setSymbolicDigest(c.SecretRequests(), in.unknownReferences()); err != nil {
			return nil, err
		}
	}
	return append(bundles, without...), nil
}

// sourceOf is the source of a bundle, for its position.
func (c Component) sourceOf(bundle string) cue.Value {
	for _, spec := range c.bundles {
		if spec.Name == bundle {
			return spec.source
		}
	}
	return c.value
}

func newBundle(c Component, in Input, spec bundleSpec, objects []Object) Bundle {
	b := Bundle{
		Name: spec.Name, Component: c.Path, Owner: in.Owner,
		Cluster: spec.Cluster, Namespace: spec.Namespace, Condition: spec.Condition,
		Objects: objects,
		Delivery: Delivery{
			Direct: spec.Direct, Class: spec.Class, KeepObjects: spec.KeepObjects, ServedBy: spec.ServedBy,
			Labels: spec.Labels, InjectLabels: spec.InjectLabels,
		},
	}
	if !spec.Direct {
		b.Delivery.Labels, b.Delivery.InjectLabels = addUpstreamLabels(spec)
	}
	return b
}

// addUpstreamLabels adds the labels that upstream's helper sets on ManagedResources (gardener:
// pkg/utils/managedresources).
func addUpstreamLabels(spec bundleSpec) (labels, inject map[string]string) {
	labels, inject = mergeMaps(nil, spec.Labels), mergeMaps(nil, spec.InjectLabels)
	if spec.Class == "" {
		labels["origin"] = "gardener"
		inject["shoot.gardener.cloud/no-cleanup"] = "true"
	}
	return labels, inject
}

// finishBundles makes workload available, hashes names and sorts every bundle. It hashes across the
// component, because bundles may refer to each other's ConfigMaps. replicas are the numbers before
// overlays.
func (c Component) finishBundles(bundles []Bundle, replicas map[workloadKey]int64) error {
	var all []Object
	for i := range bundles {
		for _, o := range bundles[i].Objects {
			if err := errors.Join(normaliseObject(o.Unstructured), checkCopiedValues(o.Unstructured)); err != nil {
				return fmt.Errorf("bundle %s: object %s/%s at %s: %w", bundles[i].Name, o.GetKind(), o.GetName(), o.Origin, err)
			}
		}
		bundles[i].setNamespaces()
		all = append(all, bundles[i].Objects...)
	}
	if err := c.applyHighAvailability(bundles, replicas); err != nil {
		return err
	}
	if err := appendNameHashes(all); err != nil {
		return err
	}
	annotateReferences(all)
	for i := range bundles {
		sortObjects(bundles[i].Objects)
		if err := duplicateObjects(bundles[i]); err != nil {
			return err
		}
	}
	return nil
}

// SetDigest sets the digest of a bundle that was made without rendering, and its unresolved facts.
func (b *Bundle) SetDigest(unresolved ...string) error {
	sortObjects(b.Objects)
	b.Unresolved = unresolved
	digest, err := digestOf(*b)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	b.Digest = Digest{Resolved: digest}
	if len(unresolved) > 0 {
		b.Digest = Digest{Symbolic: digest}
	}
	return nil
}

// setSymbolicDigest sets the digest and the facts that are still symbolic.
func (b *Bundle) setSymbolicDigest(requested []string, unknown map[string]string) error {
	text := searchText(b.Objects)
	b.Unresolved = append(unresolvedReferences(text, unknown), unresolvedIn(text, requested)...)
	b.Unresolved = append(b.Unresolved, unresolvedAddresses(text)...)
	b.Unresolved = append(b.Unresolved, unresolvedWildcard(text)...)
	digest, err := digestOf(*b)
	if err != nil {
		return err
	}
	if len(b.Unresolved) > 0 {
		b.Digest.Symbolic = digest
	} else {
		b.Digest.Resolved = digest
	}
	return nil
}

func imagesFor(in Input, opts Options) (map[string]string, error) {
	vector, err := ReadImageVector(opts.Catalogue)
	if err != nil {
		return nil, err
	}
	role := ClusterSeed
	if in.Owner.Kind == "garden" {
		role = ClusterRuntime
	}
	runtime, err := parseKubernetesVersion(in.Facts.Clusters[role].KubernetesVersion)
	if err != nil {
		return nil, err
	}
	target := in.TargetVersion
	if target == "" {
		target = runtime.Version
	}
	return ResolveImages(vector, opts.ImageOverrides, runtime.Version, target)
}

func isSelected(dir string, only []string) bool {
	if len(only) == 0 {
		return true
	}
	i := sort.SearchStrings(only, dir)
	return i < len(only) && only[i] == dir
}
