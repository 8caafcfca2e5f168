// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestImpureFunctionsOfHelm: clock, environment and randomness are rejected anywhere in a template.
func TestImpureFunctionsOfHelm(t *testing.T) {
	for call, words := range map[string]string{
		"now": "clock", "date \"2006\" .t": "clock", "dateInZone \"2006\" .t \"UTC\"": "clock", "date_in_zone \"2006\" .t \"UTC\"": "clock",
		"dateModify \"1h\" .t": "clock", "date_modify \"1h\" .t": "clock", "mustDateModify \"1h\" .t": "clock", "must_date_modify \"1h\" .t": "clock",
		"htmlDate .t": "clock", "htmlDateInZone .t \"UTC\"": "clock", "ago .t": "clock", "durationRound .t": "clock",
		"toDate \"2006\" .t": "time zone", "mustToDate \"2006\" .t": "time zone", "unixEpoch .t": "clock",
		"randAlphaNum 5": "in each render", "randAlpha 5": "in each render", "randAscii 5": "in each render", "randNumeric 5": "in each render",
		"randBytes 5": "in each render", "randInt 1 5": "in each render", "shuffle \"abc\"": "in each render", "uuidv4": "in each render",
		"genPrivateKey \"rsa\"": "another key", "genCA \"x\" 1": "another key", "genCAWithKey \"x\" 1 .k": "another key",
		"genSelfSignedCert \"x\" nil nil 1": "another key", "genSelfSignedCertWithKey \"x\" nil nil 1 .k": "another key",
		"genSignedCert \"x\" nil nil 1 .ca": "another key", "genSignedCertWithKey \"x\" nil nil 1 .ca .k": "another key",
		"bcrypt \"x\"": "at random", "htpasswd \"a\" \"b\"": "at random", "encryptAES \"k\" \"x\"": "at random",
		"env \"HOME\"": "environment", "expandenv \"$HOME\"": "environment", "getHostByName \"x\"": "network",
		"lookup \"v1\" \"Pod\" \"\" \"\"": "cluster", "keys .m": "sortAlpha", "values .m": "sortAlpha",
	} {
		name, _, _ := strings.Cut(call, " ")
		t.Run(name, func(t *testing.T) {
			for template, column := range map[string]int{
				"a: b\nxé: {{ " + call + " }}\n":                         8,
				"\n{{- if true }}{{ $x := (" + call + ") }}{{ end }}":    25,
				"\n{{ define \"x\" }}{{ list (" + call + ") }}{{ end }}": 26,
				"\n{{ with (" + call + ").Field }}{{ end }}":             10,
				"\n{{ range " + call + " | join \",\" }}{{ end }}":       10,
				"\n{{ if eq (" + call + ") 1 }}{{ end }}":                11,
				"\n{{ template \"x\" (" + call + ") }}":                  18,
			} {
				found := checkTemplate("components/t.yaml", template)
				require.Len(t, found, 1, template)
				assert.Equal(t, [3]any{"components/t.yaml", 2, column}, [3]any{found[0].File, found[0].Line, found[0].Column}, template)
				assert.Contains(t, found[0].message, "helm: function "+name+" ")
				assert.Contains(t, found[0].message, words)
			}
		})
	}
}

func TestListsInTheOrderOfAMap(t *testing.T) {
	for template, refused := range map[string]int{
		`{{ keys .m | sortAlpha | join "," }}`:                      0,
		`{{ .m | keys | sortAlpha }}`:                               0,
		`{{ range $k := (keys .m | sortAlpha) }}{{ end }}`:          0,
		`{{ sortAlpha (keys .m) }}`:                                 0,
		`{{ (keys .m) | sortAlpha }}`:                               0,
		`{{ concat (keys .a) (values .b) | uniq | sortAlpha }}`:     0,
		`{{ sortAlpha (concat (keys .a) (keys .b)) }}`:              0,
		`{{ if has "x" (keys .m) }}{{ end }}`:                       0,
		`{{ keys .m | has "x" }}`:                                   0,
		`{{ len (keys .m) }}`:                                       0,
		`{{ if keys .m }}{{ end }}`:                                 0,
		`{{ if not (keys .m) }}{{ end }}`:                           0,
		`{{ .Values.keys }}{{ .keys | toYaml }}`:                    0,
		`{{ keys .m | first | sortAlpha }}`:                         1,
		`{{ keys .m | join "," }}`:                                  1,
		`{{ concat (keys .a) (keys .b) | join "," }}`:               2,
		`{{ $k := keys .m }}{{ sortAlpha $k }}`:                     1,
		`{{ if $k := keys .m }}{{ $k }}{{ end }}`:                   1,
		`{{ with keys .m }}{{ . }}{{ else }}{{ values .m }}{{end}}`: 2,
		`{{ broken`: 0,
	} {
		assert.Len(t, checkTemplate("t", template), refused, template)
	}
}

// TestImpureChart: a chart is rejected before rendering, with all positions, including templates in
// its values.
func TestImpureChart(t *testing.T) {
	files := map[string]string{
		"garden/app/component.cue":              component(`helm: {chart: "chart", release: "r", values: {t: ["{{ randAlpha 5 }}"]}}`, ""),
		"garden/app/chart/Chart.yaml":           "apiVersion: v2\nname: app\nversion: 1.0.0\n",
		"garden/app/chart/templates/cm.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: {{ now | quote }}\n  y: {{ tpl (index .Values.t 0) . }}\n",
		"garden/app/chart/templates/_h.tpl":     "{{ define \"h\" }}{{ uuidv4 }}{{ end }}",
		"garden/app/chart/files/x.txt":          "{{ env \"HOME\" }}",
		"garden/app/chart/charts/s/Chart.yaml":  "apiVersion: v2\nname: s\nversion: 1.0.0\n",
		"garden/app/chart/charts/s/templates/x": "{{ genCA \"x\" 1 }}",
	}
	_, err := renderSmall(t, files)
	require.Error(t, err)
	for _, want := range []string{
		"components/garden/app/chart/templates/cm.yaml:5:9: helm: function now depends on the clock",
		"components/garden/app/chart/templates/_h.tpl:1:20: helm: function uuidv4 gives another value in each render",
		"components/garden/app/chart/files/x.txt:1:4: helm: function env reads the environment",
		"components/garden/app/chart/charts/s/templates/x:1:4: helm: function genCA ",
	} {
		assert.ErrorContains(t, err, want)
	}
	for _, name := range []string{"templates/_h.tpl", "files/x.txt", "charts/s/templates/x"} {
		delete(files, "garden/app/chart/"+name)
	}
	files["garden/app/chart/templates/cm.yaml"] = strings.Replace(files["garden/app/chart/templates/cm.yaml"], "now", "1", 1)
	_, err = renderSmall(t, files)
	assert.ErrorContains(t, err, "components/garden/app/component.cue:4:")
	assert.ErrorContains(t, err, "helm: function randAlpha gives another value in each render")
}

// TestChartsOfTheCatalogueArePure covers charts that no landscape renders, too.
func TestChartsOfTheCatalogueArePure(t *testing.T) {
	checked := 0
	require.NoError(t, fs.WalkDir(components.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(path.Dir(p)) != "templates" {
			return err
		}
		data, err := fs.ReadFile(components.FS, p)
		assert.Empty(t, checkTemplate(p, string(data)))
		checked++
		return err
	}))
	assert.Greater(t, checked, 20)
}
