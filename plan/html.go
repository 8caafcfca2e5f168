// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// The page is self-contained: its policy allows only the embedded style and script, by their
// hashes. Text in a value can neither run nor load anything.
var (
	//go:embed html/report.html
	htmlPage string
	//go:embed html/report.css
	htmlStyle string
	//go:embed html/report.js
	htmlScript string
)

// htmlReport is the data of the page.
type htmlReport struct {
	Style         template.CSS
	Script        template.JS
	StyleHash     string
	ScriptHash    string
	Revisions     string
	SummaryLine   string
	Notes         []string
	Empty         bool
	Nodes         []nodeGroup
	ControlPlanes []htmlTable
	Impacts       []tableRow
	Affected      []affectedRow
	HandedOver    []string
	Clusters      []htmlCluster
}

// htmlTable is a table with a title.
type htmlTable struct {
	Title string
	Rows  []tableRow
}

// htmlCluster has the changes of a cluster by owner, or the shared changes.
type htmlCluster struct {
	Title  string
	Counts string
	Owners []*htmlOwner
	total  change.Summary
}

type htmlOwner struct {
	Title      string
	Counts     string
	Components []htmlComponent
	total      change.Summary
}

type htmlComponent struct {
	Title  string
	Counts string
	Blocks []htmlBlock
}

type htmlBlock struct {
	Action, Sign, Name, Origin string
	Notes, OtherLocations      []string
	Fields                     []htmlField
}

type htmlField struct {
	Path, Note, Hidden string
	Lines              []htmlLine
}

// htmlLine is a line of a diff with the class add, remove, part or empty.
type htmlLine struct{ Class, Text string }

func (r Report) html(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{"join": strings.Join, "printable": oneLine,
		"place": func(row nodeRow) string { return r.clusterLabel(row.Landscape, row.Cluster) }}).Parse(htmlPage)
	if err != nil {
		return err
	}
	data := htmlReport{
		// both are part of the program
		Style: template.CSS(htmlStyle), Script: template.JS(htmlScript),
		StyleHash: sha256Base64(htmlStyle), ScriptHash: sha256Base64(htmlScript),
		Revisions: escapeControls(r.revisions()), SummaryLine: escapeControls(r.summaryLine()), Notes: r.notes(), Empty: r.IsEmpty(),
		Nodes: r.nodeGroups(), ControlPlanes: r.htmlControlPlanes(), Impacts: r.impactRows(maxNamesOnPage), Affected: r.affectedRows(),
		HandedOver: r.handedOver(), Clusters: r.htmlClusters(),
	}
	return page.Execute(w, data)
}

// htmlControlPlanes returns the control planes by fate.
func (r Report) htmlControlPlanes() []htmlTable {
	var out []htmlTable
	for _, f := range podEffects {
		if rows := r.controlPlaneRows(f, maxNamesOnPage); len(rows) > 0 {
			out = append(out, htmlTable{controlPlaneTitle(f), rows})
		}
	}
	return out
}

// maxNamesOnPage is the largest number of names in a cell of the page.
const maxNamesOnPage = 200

func sha256Base64(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (r Report) htmlClusters() []htmlCluster {
	var out []htmlCluster
	for _, s := range r.sections() {
		title := s.heading(r.hasNames())
		if len(out) == 0 || out[len(out)-1].Title != title {
			out = append(out, htmlCluster{Title: title})
		}
		out[len(out)-1].add(s, r.hasNames())
	}
	for i := range out {
		out[i].Counts = countsText(out[i].total)
		for _, o := range out[i].Owners {
			o.Counts = countsText(o.total)
		}
	}
	return out
}

func (c *htmlCluster) add(s section, named bool) {
	owner, component := s.Owner, s.Component
	if s.isShared() {
		owner, component = "Each shown once", "objects that change alike"
	}
	var o *htmlOwner
	for _, have := range c.Owners {
		if have.Title == owner {
			o = have
		}
	}
	if o == nil {
		o = &htmlOwner{Title: owner}
		c.Owners = append(c.Owners, o)
	}
	counts := s.summary()
	c.total.Add(counts)
	o.total.Add(counts)
	part := htmlComponent{Title: component, Counts: countsText(counts)}
	for _, b := range s.Blocks {
		part.Blocks = append(part.Blocks, b.html(named))
	}
	o.Components = append(o.Components, part)
}

func (b itemGroup) html(named bool) htmlBlock {
	out := htmlBlock{Action: string(b.Action), Sign: actionSymbols[b.Action], Name: b.name(), Origin: oneLine(b.Origin), OtherLocations: b.otherLocations(named, maxNamesOnPage)}
	if b.Reason != "" {
		out.Notes = append(out.Notes, oneLine(b.Reason))
	}
	if b.Approval != "" {
		out.Notes = append(out.Notes, "its approval is "+b.Approval)
	}
	for _, what := range b.Consequences {
		out.Notes = append(out.Notes, oneLine(what))
	}
	for _, f := range b.Fields {
		field := htmlField{Path: escapeControls(f.Path), Note: strings.TrimSpace(managerSuffix(f))}
		if f.Hidden {
			_, field.Hidden, _ = strings.Cut(hiddenText(change.Field{Hidden: true, Encrypted: f.Encrypted, OldHash: f.OldHash, NewHash: f.NewHash}), ": ")
			out.Fields = append(out.Fields, field)
			continue
		}
		for _, line := range truncateLines(fieldLines(f), maxLinesOnPage) {
			field.Lines = append(field.Lines, htmlLine{lineClasses[line[:1]], line})
		}
		out.Fields = append(out.Fields, field)
	}
	return out
}

// maxLinesOnPage is the largest number of lines per field on the page.
const maxLinesOnPage = 2000

// lineClasses are the classes of lines by their first character.
var lineClasses = map[string]string{"+": "add", "-": "remove", "@": "part"}
