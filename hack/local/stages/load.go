// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed *.yaml
var stageFiles embed.FS

const (
	// kindsAnnotation lists the kinds that a Stage in a file represents.
	kindsAnnotation = "local.pergola.dev/kinds"
	// sameKindsMarker means the previous list in the same file.
	sameKindsMarker = "as above"
)

// Stage is one Stage object and the resource it plays.
type Stage struct {
	// Name is the object's name.
	Name string
	// GroupVersion and Kind are the resource, as in "apps/v1" and "Deployment"; the core group is
	// "v1".
	GroupVersion string
	Kind         string
	// Object is the whole Stage.
	Object map[string]any
}

// IsBuiltin reports whether every API server serves the resource.
func (s Stage) IsBuiltin() bool { return s.GroupVersion == "v1" }

// Load returns all Stages of the folder.
func Load() ([]Stage, error) {
	entries, err := stageFiles.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing stages: %w", err)
	}
	var all []Stage
	for _, entry := range entries {
		data, err := stageFiles.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		stages, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("reading stages/%s: %w", path.Base(entry.Name()), err)
		}
		all = append(all, stages...)
	}
	return all, nil
}

// ForPodMode omits Stages of objects that are living in clusters with living pods: etcd, addresses
// of load balancers, volumes.
func ForPodMode(all []Stage, living bool) []Stage {
	if !living {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Stage) bool {
		return slices.Contains([]string{"Service", "PersistentVolumeClaim", "PersistentVolume", "Etcd"}, s.Kind)
	})
}

// Encode writes the Stages in the format of kwok's --config.
func Encode(all []Stage) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, stage := range all {
		if err := encoder.Encode(stage.Object); err != nil {
			return nil, fmt.Errorf("encoding stage %s: %w", stage.Name, err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encoding stages: %w", err)
	}
	return out.Bytes(), nil
}

// SplitBuiltin separates the Stages of kinds that every API server serves from the others.
func SplitBuiltin(all []Stage) (builtin, others []Stage) {
	for _, stage := range all {
		if stage.IsBuiltin() {
			builtin = append(builtin, stage)
		} else {
			others = append(others, stage)
		}
	}
	return builtin, others
}

func parse(data []byte) ([]Stage, error) {
	var all []Stage
	var kinds []string
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding YAML: %w", err)
		}
		var head stageHeader
		if err := document.Decode(&head); err != nil {
			return nil, fmt.Errorf("line %d: reading stage: %w", document.Line, err)
		}
		own := kinds
		list, found := head.Metadata.Annotations[kindsAnnotation]
		switch {
		case !found:
			own = []string{head.Spec.ResourceRef.Kind}
		case list != sameKindsMarker:
			kinds = strings.Fields(list)
			own = kinds
		}
		stages, err := expandKinds(&document, own)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", document.Line, err)
		}
		all = append(all, stages...)
	}
}

type stageHeader struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name        string            `yaml:"name"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Spec struct {
		ResourceRef struct {
			APIGroup string `yaml:"apiGroup"`
			Kind     string `yaml:"kind"`
		} `yaml:"resourceRef"`
	} `yaml:"spec"`
}

// expandKinds turns one document into a Stage for each kind.
func expandKinds(document *yaml.Node, kinds []string) ([]Stage, error) {
	template, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("reading stage: %w", err)
	}
	var all []Stage
	for _, kind := range kinds {
		text := strings.NewReplacer("$(kind)", kind, "$(name)", strings.ToLower(kind)).Replace(string(template))
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			return nil, fmt.Errorf("reading stage for %s: %w", kind, err)
		}
		var own stageHeader
		if err := yaml.Unmarshal([]byte(text), &own); err != nil {
			return nil, fmt.Errorf("reading stage for %s: %w", kind, err)
		}
		if own.Kind != "Stage" || own.Metadata.Name == "" || own.Spec.ResourceRef.Kind == "" || own.Spec.ResourceRef.APIGroup == "" {
			return nil, fmt.Errorf("not a Stage with a name and a resourceRef: kind %q, name %q", own.Kind, own.Metadata.Name)
		}
		delete(object["metadata"].(map[string]any), "annotations")
		all = append(all, Stage{
			Name: own.Metadata.Name, GroupVersion: own.Spec.ResourceRef.APIGroup,
			Kind: own.Spec.ResourceRef.Kind, Object: object,
		})
	}
	return all, nil
}
