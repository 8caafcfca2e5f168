// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"errors"
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas"
)

// readCUE returns the packages of the CUE files in one folder. Files of one package belong
// together; a file without a package clause is alone. It ignores packages of other folders and
// files that CUE ignores.
func (l *layer) readCUE(folder string, names []string) []evaluation.Package {
	packages := map[string][]evaluation.File{}
	var order []string
	for _, name := range names {
		data, ok := l.readTextFile(name)
		if !ok {
			continue
		}
		file := evaluation.File{Name: name, Data: data}
		group := name
		clause, ignored := evaluation.ParseHeader(file)
		if ignored {
			continue
		}
		if clause != "" {
			group = path.Join(folder, "package "+clause)
		}
		if packages[group] == nil {
			order = append(order, group)
		}
		packages[group] = append(packages[group], file)
	}
	slices.Sort(order)
	result := make([]evaluation.Package, len(order))
	for i, group := range order {
		result[i] = l.newPackage(packages[group])
	}
	return result
}

func (l *loader) newPackage(files []evaluation.File) evaluation.Package {
	return evaluation.Package{Files: files, MaxDepth: l.limits.Depth, MaxValues: l.limits.Values}
}

// errEvaluationTimeout is the cause of a context that ends because all CUE files together take too
// long.
var errEvaluationTimeout = errors.New("the CUE files took too long in total")

// evaluate evaluates packages concurrently and returns the objects of each.
func (l *loader) evaluate(packages []evaluation.Package) ([][]Declaration, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	results := make([]evaluation.Result, len(packages))
	late := make([]bool, len(packages))
	started := time.Now()
	defer func() { l.evaluationTime += time.Since(started) }()
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.limits.Evaluation-l.evaluationTime, errEvaluationTimeout)
	defer cancel()
	var group panics.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, pkg := range packages {
		group.Go(func() error {
			var err error
			results[i], err = l.evaluator.Evaluate(ctx, pkg)
			if err != nil && l.ctx.Err() == nil && errors.Is(context.Cause(ctx), errEvaluationTimeout) {
				late[i] = true
				return nil
			}
			return err
		})
	}
	if err := panics.AsError(group.Wait)(); err != nil {
		return nil, err
	}
	found := make([][]Declaration, len(packages))
	for i, pkg := range packages {
		if late[i] {
			l.report(pkg.Files[0].Name, 1, 1, evaluation.RuleCUE, schemas.TypeInvalid, "the CUE files of the landscape took longer than %s in total: this one was skipped", l.limits.Evaluation)
			continue
		}
		found[i] = l.declareCUE(pkg, results[i])
	}
	return found, nil
}

// declareCUE makes declarations of the objects of a package, and adds the violations.
func (l *loader) declareCUE(pkg evaluation.Package, result evaluation.Result) (found []Declaration) {
	for _, v := range result.Violations {
		v.File = l.relative(v.File)
		l.violations = append(l.violations, v)
	}
	if len(result.Objects) == 0 && len(result.Violations) == 0 {
		l.warnWithoutObjects(pkg)
	}
	for _, value := range result.Objects {
		object, ok := plainValue(value).(map[string]any)
		name := pkg.Files[value.File].Name
		if !ok {
			continue
		}
		if _, encrypted := object[sopsField]; encrypted {
			l.report(name, value.Line, value.Column, "landscape/sops", schemas.TypeForbidden, "encrypted objects must be YAML files")
			continue
		}
		found = append(found, l.declare(name, parsedObject{
			object: object, line: value.Line, column: value.Column,
			tree: sync.OnceValue(func() *positionTree { return l.valuePositions(pkg, value) }),
		})...)
	}
	return found
}

// warnWithoutObjects warns of CUE files without an object: their package is misspelt, or all their
// fields are hidden.
func (l *loader) warnWithoutObjects(pkg evaluation.Package) {
	for _, file := range pkg.Files {
		line, hint := evaluation.FirstDeclaration(file)
		if line == 0 {
			continue // only comments
		}
		if hint != "" {
			hint = "; " + hint
		}
		l.report(file.Name, line, 1, ruleIgnoredFile, schemas.TypeNotSupported, "declares nothing: the CUE files of this package make no object, and the package has only files of the same folder and package%s", hint)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
		return
	}
}

// plainValue converts a value to the types of unstructured content.
func plainValue(value *evaluation.Value) any {
	switch value.Kind {
	case evaluation.Map:
		result := make(map[string]any, len(value.Fields))
		for name, field := range value.Fields {
			result[name] = plainValue(field)
		}
		return result
	case evaluation.List:
		result := make([]any, len(value.Items))
		for i, item := range value.Items {
			result[i] = plainValue(item)
		}
		return result
	case evaluation.Int:
		number, _ := strconv.ParseInt(value.Text, 10, 64)
		return number
	case evaluation.Float:
		number, _ := strconv.ParseFloat(value.Text, 64)
		return number
	case evaluation.Bool:
		return value.Text == "true"
	case evaluation.String:
		return value.Text
	}
	return nil
}

// valuePositions returns where a value and its parts are written.
func (l *loader) valuePositions(pkg evaluation.Package, value *evaluation.Value) *positionTree {
	tree := &positionTree{position: schemas.Position{File: l.relative(pkg.Files[value.File].Name), Line: value.Line, Column: value.Column}}
	if value.Kind == evaluation.Map {
		tree.isMap, tree.fields = true, make(map[string]*positionTree, len(value.Fields))
		for name, field := range value.Fields {
			tree.fields[name] = l.valuePositions(pkg, field)
		}
	}
	for _, item := range value.Items {
		tree.items = append(tree.items, l.valuePositions(pkg, item))
	}
	return tree
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
