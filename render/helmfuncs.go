// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/pergola-dev/pergola/schemas"
)

// impureFunctionReason returns why a Helm function is rejected, with an alternative, or "" if it is
// allowed. Functions: sprig, functions.go; Helm, pkg/engine/funcs.go.
func impureFunctionReason(name string) string {
	switch name {
	case "now", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
		"htmlDate", "htmlDateInZone", "ago", "durationRound", "toDate", "mustToDate", "unixEpoch":
		return "depends on the clock or the time zone of the machine: write the date into the values as text"
	case "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4":
		return "gives another value in each render: declare a generated secret in the component (secrets), or use a fixed value"
	case "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey":
		return "gives another key or certificate in each render: declare it in the component (secrets) and take its name from the facts"
	case "bcrypt", "htpasswd", "encryptAES":
		return "salts its result at random: declare a generated secret in the component (secrets)"
	case "env", "expandenv":
		return "reads the environment of the machine: pass the value in the values of the chart"
	case "getHostByName":
		return "needs the network: pass the address in the values of the chart"
	case "lookup":
		return "needs a cluster, and rendering has none: pass facts in the values of the chart"
	}
	return ""
}

// isUnordered reports whether a function returns a list in the random order of a map.
func isUnordered(name string) bool { return name == "keys" || name == "values" }

// isOrderIndependent reports whether the result of a function does not depend on the order of a
// list.
func isOrderIndependent(name string) bool {
	return slices.Contains([]string{"sortAlpha", "has", "mustHas", "len", "empty", "not"}, name)
}

// isOrderPreserving reports whether a function preserves the order of a list.
func isOrderPreserving(name string) bool {
	return slices.Contains([]string{
		"uniq", "mustUniq", "compact", "mustCompact", "without", "mustWithout", "concat", "reverse", "mustReverse", "append", "mustAppend",
		"push", "mustPush", "prepend", "mustPrepend", "toStrings", "deepCopy", "mustDeepCopy",
	}, name)
}

// checkTemplates finds function calls in a chart and its subcharts that would make the render
// change without a change of input.
func checkTemplates(c *chart.Chart, dir string) findings {
	var out findings
	for _, template := range c.Templates {
		out = append(out, checkTemplate(cataloguePath(path.Join(dir, template.Name)), string(template.Data))...)
	}
	for _, file := range c.Files {
		if strings.Contains(string(file.Data), "{{") { // may be rendered by tpl (.Files.Get …)
			out = append(out, checkTemplate(cataloguePath(path.Join(dir, file.Name)), string(file.Data))...)
		}
	}
	for _, sub := range c.Dependencies() {
		out = append(out, checkTemplates(sub, path.Join(dir, "charts", sub.Name()))...)
	}
	return out
}

// checkValues is checkTemplates for templates in values, which a chart may render by tpl.
func checkValues(values any, v cue.Value) findings {
	var out findings
	switch content := values.(type) {
	case map[string]any:
		for _, name := range sortedKeys(content) {
			out = append(out, checkValues(content[name], v.LookupPath(cue.MakePath(cue.Str(name))))...)
		}
	case []any:
		for i, item := range content {
			out = append(out, checkValues(item, v.LookupPath(cue.MakePath(cue.Index(i))))...)
		}
	case string:
		if strings.Contains(content, "{{") {
			for _, f := range checkTemplate("", content) {
				out = append(out, findingAt(v, "%s", f.message))
			}
		}
	}
	return out
}

// checkTemplate checks one template. It skips templates that do not parse: Helm reports them.
func checkTemplate(file, text string) findings {
	root := parse.New(file)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, "", "", trees); err != nil {
		return nil
	}
	w := templateWalk{file: file, text: text}
	for _, tree := range trees {
		w.visitNode(tree.Root, false)
	}
	slices.SortFunc(w.findings, func(a, b finding) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return w.findings
}

type templateWalk struct {
	file, text string
	findings   findings
}

func (w *templateWalk) report(at parse.Pos, name, message string) {
	before := w.text[:at]
	w.findings = append(w.findings, finding{
		Position: schemas.Position{
			File: w.file, Line: strings.Count(before, "\n") + 1,
			Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
		},
		kind: schemas.TypeForbidden, message: fmt.Sprintf("helm: function %s %s", name, message),
	})
}

// visitNode visits a node of a template. settled means that the order of a list from this node does
// not matter.
func (w *templateWalk) visitNode(n parse.Node, settled bool) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			w.visitNode(child, false)
		}
	case *parse.ActionNode:
		w.visitPipe(n.Pipe, false)
	case *parse.TemplateNode:
		w.visitPipe(n.Pipe, false)
	case *parse.IfNode:
		w.visitBranch(&n.BranchNode, true)
	case *parse.WithNode:
		w.visitBranch(&n.BranchNode, false)
	case *parse.RangeNode:
		w.visitBranch(&n.BranchNode, false)
	case *parse.PipeNode:
		w.visitPipe(n, settled)
	case *parse.ChainNode:
		w.visitNode(n.Node, false)
	case *parse.IdentifierNode:
		switch message := impureFunctionReason(n.Ident); {
		case message != "":
			w.report(n.Pos, n.Ident, message)
		case isUnordered(n.Ident) && !settled:
			w.report(n.Pos, n.Ident, "gives a list in the order of a map, which changes with each render: pass it through sortAlpha")
		}
	}
}

func (w *templateWalk) visitBranch(n *parse.BranchNode, settled bool) {
	w.visitPipe(n.Pipe, settled && len(n.Pipe.Decl) == 0)
	w.visitNode(n.List, false)
	w.visitNode(n.ElseList, false)
}

// visitPipe visits commands backwards from the last one, whose result is that of the pipe.
func (w *templateWalk) visitPipe(n *parse.PipeNode, settled bool) {
	if n == nil {
		return
	}
	for i := len(n.Cmds) - 1; i >= 0; i-- {
		args := n.Cmds[i].Args
		w.visitNode(args[0], settled)
		function, _ := args[0].(*parse.IdentifierNode)
		name := ""
		if function != nil {
			name = function.Ident
		}
		settled = isOrderIndependent(name) || isOrderPreserving(name) && settled
		for _, arg := range args[1:] {
			w.visitNode(arg, settled)
		}
	}
}
