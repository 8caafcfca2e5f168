// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source/blame"
)

// Options are the options for Explain.
type Options struct {
	// Catalogue is the catalogue to render the landscape with.
	Catalogue fs.FS
	// CatalogueDir is its folder, whose files have a history, or "".
	CatalogueDir string
	// Cluster and Owner ("seed local", "shoot garden-local/local") are filters; "" means all.
	Cluster, Owner string
	// Now is the time for the expiry of versions.
	Now time.Time
	// Blame returns the commit of a line; it is nil if not available.
	Blame func(ctx context.Context, file string, line int) (blame.Result, error)
	// ReadObject reads an object from a cluster; nil disables it. For a missing object it returns
	// nil without an error.
	ReadObject ObjectReader
	// Clusters are those that Live can read; answers for others say that they cannot be read.
	Clusters []string
	// MaxRenders limits the renders of a component to find what determines a value; the default is
	// 400.
	MaxRenders int
}

// maxAnswers limits the answers, because one object can be on many clusters.
const maxAnswers = 5

// Explain answers a question such as "Deployment garden/kube-apiserver.spec.replicas" for each
// cluster and bundle with the object. An UnknownError suggests names for a missing object or field.
// An unknown owner or cluster is a different error.
func Explain(ctx context.Context, l *landscapes.Landscape, text string, opts Options) ([]Answer, error) {
	if opts.MaxRenders <= 0 {
		opts.MaxRenders = 400
	}
	q, err := parseQuestion(text)
	if err != nil {
		return nil, err
	}
	e := &explainer{landscape: l, opts: opts, question: q}
	if err := e.checkFilters(); err != nil {
		return nil, err
	}
	found, err := e.findObjects()
	if err != nil {
		return nil, err
	}
	var answers []Answer
	for i, f := range found {
		if i == maxAnswers {
			last := &answers[i-1]
			last.Notes = append(last.Notes, fmt.Sprintf("%d more objects of this name are omitted: give --cluster or --owner", len(found)-i))
			break
		}
		answer, err := e.answer(ctx, f)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// explainer answers one question.
type explainer struct {
	landscape *landscapes.Landscape
	opts      Options
	question  question

	// renderOptions has the options for rendering; inputs has the owners; both are set on demand.
	renderOptions render.Options
	inputs        []render.Input
}

// objectMatch is an object that matches the question.
type objectMatch struct {
	nameFit int
	cluster string
	object  *unstructured.Unstructured
	// declaration is set for a declared object.
	declaration *landscapes.Declaration
	// bundle, origin and input are set for a rendered object.
	bundle render.Bundle
	origin render.Origin
	input  *render.Input
	// path is the path of the field in the question.
	path string
}

func (e *explainer) answer(ctx context.Context, m objectMatch) (Answer, error) {
	a := Answer{Subject: Subject{Landscape: e.landscape.Config.Name, Cluster: m.cluster, Object: change.RefOf(m.object)}}
	if m.nameFit == matchExceptHash {
		a.Notes = append(a.Notes, "the name has a hash of the content: this is the currently rendered object")
	}
	asked := m.path
	m.path = gitPath(m)
	list, value, err := followPath(m.object.Object, m.path)
	if err != nil {
		return e.answerUndeclared(ctx, a, m, err)
	}
	a.Subject.Field = list.String()
	if m.path != asked {
		a.Notes = append(a.Notes, "Git has it as "+a.Subject.Field+": the API server stores stringData in data, encoded")
	}
	if m.path != "" {
		a.Value = redactedValue(m.object, list, value)
	}
	if m.declaration != nil {
		e.answerDeclared(&a, m, list)
	} else {
		if err := e.answerRendered(ctx, &a, m, list); err != nil {
			return a, err
		}
	}
	e.addLive(ctx, &a, m, list, value)
	e.addCommits(ctx, &a)
	return a, nil
}

// answerUndeclared answers for a field that Git does not declare, but the API or a controller may
// have set.
func (e *explainer) answerUndeclared(ctx context.Context, a Answer, m objectMatch, unknown error) (Answer, error) {
	a.Subject.Field = m.path
	if m.declaration != nil {
		e.setInventory(&a, m)
		if e.answerDefaulted(&a, m) {
			e.addLive(ctx, &a, m, nil, nil)
			e.addCommits(ctx, &a)
			return a, nil
		}
	} else {
		e.setBundle(&a, m)
	}
	if !e.addLive(ctx, &a, m, nil, nil) {
		return a, unknown
	}
	a.Notes = append(a.Notes, "Git does not declare this field: "+unknown.Error())
	return a, nil
}

// redactedValue redacts secrets in a value.
func redactedValue(object *unstructured.Unstructured, list steps, value any) *Value {
	if value == nil {
		return &Value{}
	}
	f := redact.ConcealField(object.Object, list.keys(), change.Field{New: value})
	return &Value{Value: f.New, Hidden: f.Hidden}
}

// addCommits adds the commits of all places that people can write.
func (e *explainer) addCommits(ctx context.Context, a *Answer) {
	var places []*Position
	for i := range a.WrittenAt {
		places = append(places, &a.WrittenAt[i])
	}
	for i := range a.DerivedFrom {
		if a.DerivedFrom[i].Position != nil {
			places = append(places, a.DerivedFrom[i].Position)
		}
	}
	if a.Image != nil {
		places = append(places, &a.Image.Position)
	}
	known := map[string]*blame.Result{}
	for _, p := range places {
		file, ok := e.localFile(*p)
		if !ok || p.Line == 0 || e.opts.Blame == nil {
			continue
		}
		key := fmt.Sprintf("%s:%d", file, p.Line)
		if known[key] == nil {
			answer, err := e.opts.Blame(ctx, file, p.Line)
			if err != nil {
				answer = blame.Result{Reason: "its history cannot be read: " + redact.Text(err.Error())}
			}
			known[key] = &answer
		}
		p.Change = known[key]
	}
}

// localFile returns the file of a place on this machine, or false for a file that only the program
// contains.
func (e *explainer) localFile(p Position) (string, bool) {
	if inside, ok := strings.CutPrefix(p.File, "components/"); ok && (p.Kind == positionTemplate || p.Kind == positionImageVector) {
		return filepath.Join(e.opts.CatalogueDir, filepath.FromSlash(inside)), e.opts.CatalogueDir != ""
	}
	return filepath.Join(e.landscape.Dir, filepath.FromSlash(p.File)), true
}

// Values of Position.What.
const (
	positionDeclaration = "declaration"
	positionTemplate    = "template"
	positionOverlay     = "overlay"
	positionImageVector = "image vector"
	positionSettings    = "settings"
	positionFacts       = "facts"
)
