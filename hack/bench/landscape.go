// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// templateFiles are the templates of the landscape. Their placeholders are fields of types below
// and in shoots.go.
//
//go:embed landscape/*.tmpl
var templateFiles embed.FS

// Sizes of the landscape besides the number of Shoots.
const (
	seedCount = 20
	shootStep = 7919 // a prime: the distance between two Shoots that change
)

func regions() []string { return []string{"ap-south", "eu-central", "eu-north", "us-east", "us-west"} }

// copiedFiles are the files of landscapes/local that are used unchanged.
func copiedFiles() []string {
	return []string{"garden/garden.yaml", "garden/secrets.yaml", "seeds/secrets.yaml"}
}

// seed has networks that no other seed, Shoot or runtime cluster has.
type seed struct {
	Name, Region          string
	Nodes, Pods, Services int // second bytes of 10.0.0.0/8
}

// project has a namespace, credentials and configurations for the API servers of its Shoots.
type project struct {
	Name, Team, Stage string
	// Identity says that its credentials are a WorkloadIdentity instead of a Secret.
	Identity bool
}

// landscape is a folder with one Garden, some Seeds and Projects and many Shoots. Its content
// depends only on the number of Shoots.
type landscape struct {
	dir       string
	templates *template.Template
	Seeds     []seed
	Projects  []project
	Regions   []string
	// folders and files are the folders and the files of the Shoots, relative to dir.
	folders, files []string
	changes        int
}

// writeLandscape writes the landscape into a folder.
func writeLandscape(s settings, dir string) (*landscape, error) {
	templates, err := template.New("").Option("missingkey=error").ParseFS(templateFiles, "landscape/*.tmpl")
	if err != nil {
		return nil, err
	}
	l := &landscape{dir: dir, templates: templates, Seeds: seeds(), Projects: projects(), Regions: regions()}
	for _, name := range copiedFiles() {
		data, err := os.ReadFile(filepath.Join(s.repository, "landscapes", "local", filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if err := l.writeFile(name, data); err != nil {
			return nil, err
		}
	}
	if err := l.writeTemplate("landscape.yaml", "landscape.yaml", l); err != nil {
		return nil, err
	}
	if err := l.writeTemplate("gardenconfig/cloudprofile.yaml", "cloudprofile.yaml", l); err != nil {
		return nil, err
	}
	for _, seed := range l.Seeds {
		if err := l.writeTemplate("seeds/"+seed.Name+".yaml", "seed.yaml", seed); err != nil {
			return nil, err
		}
	}
	for _, project := range l.Projects {
		if err := l.writeTemplate("projects/"+project.Name+"/project.yaml", "project.yaml", project); err != nil {
			return nil, err
		}
	}
	return l, l.writeShoots(s.shoots)
}

func (l *landscape) writeShoots(count int) error {
	known := map[string]bool{}
	for i := range count {
		x := newShoot(i, 0, l.Seeds, l.Projects)
		folder := "projects/" + x.Project.Name + "/shoots"
		file := folder + "/" + x.Name + ".yaml"
		if err := l.writeTemplate(file, "shoot.yaml", x); err != nil {
			return err
		}
		if !known[folder] {
			known[folder] = true
			l.folders = append(l.folders, folder)
		}
		l.files = append(l.files, file)
	}
	return nil
}

// change changes a label of one Shoot, another Shoot each time.
func (l *landscape) change() error {
	l.changes++
	i := l.changes * shootStep % len(l.files)
	return l.writeTemplate(l.files[i], "shoot.yaml", newShoot(i, l.changes, l.Seeds, l.Projects))
}

func (l *landscape) writeTemplate(name, from string, values any) error {
	var out bytes.Buffer
	if err := l.templates.ExecuteTemplate(&out, from+".tmpl", values); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return l.writeFile(name, out.Bytes())
}

func (l *landscape) writeFile(name string, data []byte) error {
	file := filepath.Join(l.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// seeds returns the Seeds, as many in each region.
func seeds() []seed {
	all := regions()
	var out []seed
	for i := range seedCount {
		region := all[i%len(all)]
		out = append(out, seed{Name: fmt.Sprintf("%s-%d", region, i/len(all)+1), Region: region, Nodes: 160 + i, Pods: 100 + i, Services: 130 + i})
	}
	return out
}

// projects returns one project for each team and stage. Gardener limits names to ten characters.
func projects() []project {
	var out []project
	for _, team := range []string{"auth", "crm", "data", "erp", "iot", "log", "ml", "pay", "search", "web"} {
		for i, stage := range []string{"dev", "qa", "int", "pre", "prd"} {
			out = append(out, project{Name: team + "-" + stage, Team: team, Stage: stage, Identity: i >= 3})
		}
	}
	return out
}
