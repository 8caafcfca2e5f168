// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// finding is a violation before its position is looked up.
type finding struct {
	path         string
	documentPath string // field whose position is shown, if it is not path
	typ          ViolationType
	rule         string
	message      string
	severity     Severity
	suggestion   string // probable name of an unknown field
}

var (
	objectPath     = cue.ParsePath("object")
	oldPath        = cue.ParsePath("old")
	landscapePath  = cue.ParsePath("landscape")
	rulesPath      = cue.ParsePath("rules")
	fieldsPath     = cue.ParsePath("fields")
	atPath         = cue.ParsePath("at")
	violationsPath = cue.ParsePath("violations")
)

// worker holds one CUE context with the schemas compiled into it. Only one goroutine may use it,
// because CUE contexts are not safe for concurrent use. It is replaced after a number of
// evaluations, because CUE contexts never shrink.
type worker struct {
	sources     *sources
	landscape   *landscapeIndex
	results     *memoryCache[[]ruleResult]
	ctx         *cue.Context
	base        map[schema.GroupVersionKind]cue.Value
	units       map[compiledUnitKey]cue.Value
	evaluations int
	buffer      []byte
}

// compiledUnitKey identifies the compiled rules of a unit, for new objects or for changed ones.
type compiledUnitKey struct {
	unit    *ruleUnit
	changed bool
}

// ruleResult is the result of one rule for an object.
type ruleResult struct {
	id       string
	findings []finding
	// fault is the finding that the rule cannot be evaluated; it is nil if it can.
	fault *finding
}

func newWorker(s *sources, landscape *landscapeIndex, known *memoryCache[[]ruleResult]) *worker {
	w := &worker{sources: s, landscape: landscape, results: known}
	w.resetContext()
	return w
}

// resetContext starts again with an empty context, so that the old one can be freed.
func (w *worker) resetContext() {
	w.ctx = cuecontext.New()
	w.base = map[schema.GroupVersionKind]cue.Value{}
	w.units = map[compiledUnitKey]cue.Value{}
	w.evaluations = 0
}

// check returns the findings about one object. An error means that the schemas are broken.
func (w *worker) check(kind *structure.Kind, object, old map[string]any) ([]finding, error) {
	clean, empty := kind.Normalise(object)
	var findings []finding
	findings = append(findings, emptyValueFindings(empty)...)
	broken, err := w.checkStructure(kind, clean)
	if err != nil {
		return nil, err
	}
	clean, misspelt, renames := correctFieldNames(kind, clean, broken)
	if len(renames) > 0 { // later checks use the intended names
		clean, _ = kind.Normalise(clean)
		if broken, err = w.checkStructure(kind, clean); err != nil {
			return nil, err
		}
		findings = append(findings, misspelt...)
	}
	if old != nil {
		old, _ = kind.Normalise(old)
	}
	input := ruleInput{kind: kind, object: clean, old: old, landscape: w.landscape}
	ruled, err := w.checkRules(input, len(broken) > 0)
	if err != nil {
		return nil, err
	}
	broken = slices.DeleteFunc(broken, func(b finding) bool { return b.typ == TypeRequired && isOptionalField(kind, b.path) })
	ruled = dropFollowUps(append(ruled, checkGoRules(input)...), broken)
	inside, err := w.checkTemplates(input)
	if err != nil {
		return nil, err
	}
	configured, err := w.checkConfigurations(input)
	if err != nil {
		return nil, err
	}
	inside = append(inside, configured...)
	findings = append(findings, dropMissingReportedByRules(kind, broken, ruled)...)
	findings = append(append(findings, dropFollowUps(inside, broken)...), ruled...)
	return dropDuplicateFindings(renames.restorePaths(findings)), nil
}

// encode converts content to CUE. It preserves null, which CUE would take for any value.
func (w *worker) encode(content any) cue.Value { return w.ctx.Encode(content, cue.NilIsAny(false)) }

// checkStructure checks an object against the closed definition of its kind. CUE and Go use the
// same nodes and give the same verdict (TestCUEAndGoStructureAgree, FuzzStructure), but
// CUE takes a hundred times as long. So CUE decides only about objects that Go rejects. The
// messages come from the schema, because those of CUE are about unification.
func (w *worker) checkStructure(kind *structure.Kind, object map[string]any) ([]finding, error) {
	findings := structuralFindings(kind, object)
	if len(findings) == 0 {
		return nil, nil
	}
	paths, err := w.rejectedFields(kind, object)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	for _, path := range paths {
		if !slices.ContainsFunc(findings, func(f finding) bool { return isRelatedPath(f.path, path) }) {
			findings = append(findings, finding{path: path, typ: TypeInvalid, rule: RuleStructure, severity: SeverityError,
				message: "does not have the form that the schema of " + kind.GVK.Kind + " asks for"})
		}
	}
	return findings, nil
}

// rejectedFields returns the fields that the definition in CUE rejects.
func (w *worker) rejectedFields(kind *structure.Kind, object map[string]any) ([]string, error) {
	base, ok := w.base[kind.GVK]
	if !ok {
		var err error
		if base, err = w.sources.compileBase(w.ctx, kind); err != nil {
			return nil, err
		}
		w.base[kind.GVK] = base
	}
	w.evaluations++
	if err := base.Unify(w.encode(object)).Validate(cue.Concrete(true)); err != nil {
		return cueErrorPaths(kind, err), nil
	}
	return nil, nil
}

// structuralFindings returns the findings of the schema with their messages.
func structuralFindings(kind *structure.Kind, object map[string]any) []finding {
	var findings []finding
	for _, f := range kind.Check(object) {
		findings = append(findings, finding{path: f.Path.String(), typ: ViolationType(f.Type), rule: RuleStructure, severity: SeverityError, message: f.Message, suggestion: f.IntendedPath.String()})
	}
	return findings
}

func emptyValueFindings(paths []fieldpath.Path) []finding {
	var findings []finding
	for _, path := range paths {
		findings = append(findings, finding{path: path.String(), typ: TypeInvalid, rule: ruleEmptyValue, severity: SeverityWarning,
			message: "has no value, which is the same as leaving it out; write {} for an object without fields, or remove the line"})
	}
	return findings
}

// imageWithoutVersionsPattern matches images of a NamespacedCloudProfile, which uses the type of a
// CloudProfile but may omit versions.
var imageWithoutVersionsPattern = regexp.MustCompile(`^spec\.machineImages\[\d+\]\.versions$`)

// isOptionalField reports whether upstream accepts the kind without a field that its definition
// requires.
func isOptionalField(kind *structure.Kind, path string) bool {
	return kind.GVK.Kind == "NamespacedCloudProfile" && imageWithoutVersionsPattern.MatchString(path)
}

// cueErrorPaths returns the fields that a CUE error names.
func cueErrorPaths(kind *structure.Kind, err error) []string {
	var paths []string
	for _, e := range errors.Errors(err) {
		names := e.Path()
		if len(names) > 0 && strings.HasPrefix(names[0], "#") {
			names = names[1:]
		}
		for i := range names {
			names[i] = strings.Trim(names[i], `"`)
		}
		paths = append(paths, kind.Root.CanonicalPath(names).String())
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// isRelatedPath reports whether one path is the other one or a parent of it.
func isRelatedPath(a, b string) bool { return isWithinPath(a, b) || isWithinPath(b, a) }

// isWithinPath reports whether the inner path is the outer one or lies below it.
func isWithinPath(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// checkRules returns the findings of the rules of the kind. If the structure of the new or the old
// object is broken, it skips rules that fail, because they rely on it. Otherwise it reports the
// failure as a bug, beside the other findings.
func (w *worker) checkRules(input ruleInput, broken bool) ([]finding, error) {
	known, err := w.sources.unitsOf(input.kind.GVK)
	if err != nil {
		return nil, err
	}
	var all []ruleResult
	for _, u := range known.units {
		if u.rules[0].Scope == scopeLandscape && input.landscape == nil {
			continue
		}
		found, err := w.checkUnit(u, input)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b ruleResult) int { return cmp.Compare(known.order[a.id], known.order[b.id]) })
	var findings []finding
	for _, r := range all {
		switch {
		case r.fault == nil:
			findings = append(findings, r.findings...)
		case !broken && (input.old == nil || len(input.kind.Check(input.old)) == 0):
			findings = append(findings, *r.fault)
		}
	}
	return findings, nil
}

// checkUnit returns the results of a unit's rules that have any finding. It reuses those of another
// object with the same content in the parts that the unit reads. They are read-only.
func (w *worker) checkUnit(u *ruleUnit, input ruleInput) ([]ruleResult, error) {
	object := u.dependencies.object.selectFrom(input.object)
	var old map[string]any
	if input.old != nil {
		old = u.dependencies.old.selectFrom(input.old)
	}
	key := w.cacheKey(u, object, old, input.old != nil)
	if found, ok := w.results.get(key); ok {
		return found, nil
	}
	rules, err := w.compiledRules(u, input.old != nil)
	if err != nil {
		return nil, err
	}
	w.evaluations++
	filled := rules.FillPath(objectPath, w.encode(object))
	if input.old != nil {
		filled = filled.FillPath(oldPath, w.encode(old))
	}
	filled = filled.LookupPath(rulesPath)
	var found []ruleResult
	for _, rule := range u.rules {
		r := ruleResult{id: rule.ID}
		if r.findings, err = evaluateRule(rule, filled.LookupPath(cue.MakePath(cue.Str(rule.ID)))); err != nil {
			fault := w.sources.ruleFailureFinding(rule, err)
			r.findings, r.fault = nil, &fault
		}
		if len(r.findings) > 0 || r.fault != nil {
			found = append(found, r)
		}
	}
	w.results.put(key, found)
	return found, nil
}

// cacheKey returns the digest of everything that the findings of a unit depend on.
func (w *worker) cacheKey(u *ruleUnit, object, old map[string]any, changed bool) resultcache.Key {
	to := appendText(w.buffer[:0], w.sources.digest)
	to = appendText(to, u.id)
	to = appendCanonical(to, object)
	if to = appendCanonical(to, changed); changed {
		to = appendCanonical(to, old)
	}
	if !u.dependencies.landscape.isEmpty() {
		around := w.landscape.selectionDigest(u.dependencies.landscape)
		to = append(to, around[:]...)
	}
	w.buffer = to
	return sha256.Sum256(to)
}

// compiledRules compiles the rules of a unit on first use, and fills in all but the object.
func (w *worker) compiledRules(u *ruleUnit, changed bool) (cue.Value, error) {
	set := compiledUnitKey{unit: u, changed: changed}
	if rules, ok := w.units[set]; ok {
		return rules, nil
	}
	rules, err := u.compile(w.sources, w.ctx)
	if err != nil {
		return cue.Value{}, err
	}
	if w.landscape != nil {
		rules = rules.FillPath(landscapePath, w.encode(w.landscape.selectFields(u.dependencies.landscape)))
	} else {
		rules = rules.FillPath(landscapePath, ast.NewNull())
	}
	if !changed {
		rules = rules.FillPath(oldPath, ast.NewNull())
	}
	w.units[set] = rules
	return rules, nil
}

func evaluateRule(rule Rule, value cue.Value) ([]finding, error) {
	items, err := value.LookupPath(violationsPath).List()
	if err != nil {
		return nil, err
	}
	var findings []finding
	for items.Next() {
		f := finding{rule: rule.ID, severity: rule.Severity}
		if f.path, err = stringField(items.Value(), "path"); err != nil {
			return nil, err
		}
		if f.message, err = stringField(items.Value(), "message"); err != nil {
			return nil, err
		}
		if items.Value().LookupPath(atPath).Exists() {
			if f.documentPath, err = stringField(items.Value(), "at"); err != nil {
				return nil, err
			}
		}
		typ, err := stringField(items.Value(), "type")
		if err != nil {
			return nil, err
		}
		f.typ = ViolationType(typ)
		findings = append(findings, f)
	}
	return findings, nil
}

func stringField(value cue.Value, field string) (string, error) {
	child := value.LookupPath(cue.MakePath(cue.Str(field)))
	if found, ok := child.Default(); ok {
		child = found
	}
	result, err := child.String()
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return result, nil
}

// dropDuplicateFindings drops further findings of the same type about the same field at the same
// place. The first one is structural.
func dropDuplicateFindings(findings []finding) []finding {
	type key struct {
		path, at string
		typ      ViolationType
	}
	seen := make(map[key]bool, len(findings))
	return slices.DeleteFunc(findings, func(f finding) bool {
		k := key{path: fieldpath.Parse(f.path).String(), at: f.documentPath, typ: f.typ}
		if f.severity == SeverityWarning {
			return false
		}
		double := seen[k]
		seen[k] = true
		return double
	})
}
