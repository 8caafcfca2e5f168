// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
)

// Limits of a publication, in bytes and files.
const (
	MaxSize  = 8 << 20
	MaxFiles = 2000
)

// Content is the part of a landscape folder that a seed needs.
type Content struct {
	// Catalogue is the version of the catalogue for rendering.
	Catalogue string
	// Folder is the landscape folder in Files.
	Folder string
	// Files are the files by path in the repository: landscape.yaml with the settings for seeds,
	// overlays, and the default domains.
	Files map[string][]byte
	// Review says whether a review is required; Files contain it as well.
	Review landscapev1alpha1.ReviewMode
}

// domainsFile is the file with the default domains, in the landscape folder.
const domainsFile = "pergola-default-domains.yaml"

// EncryptedError means that an overlay has an encrypted file, which is not published: a seed cannot
// decrypt it, and its plain text must stay secret.
type EncryptedError struct{ File string }

func (e *EncryptedError) Error() string {
	return fmt.Sprintf("%s is encrypted, but overlays are published unchanged: declare the Secret as an object of the landscape, and refer to it", e.File)
}

// ObjectSettings contains the settings of the Landscape object for a seed, beside its Git content.
type ObjectSettings struct {
	// Approved are the ids of held deletions that are approved for the seed.
	Approved []string
	// Review says whether deletions on seeds must have been reviewed; the object or Git sets it.
	Review landscapev1alpha1.ReviewMode
}

// The ContentOf function returns the part of a landscape that its seeds need. It excludes the
// Garden, other seeds, sources, access and secrets, so that a commit about them changes nothing
// here.
func ContentOf(l *landscapes.Landscape, decided ObjectSettings) (*Content, error) {
	c := &Content{Catalogue: components.Version, Folder: l.Path, Files: map[string][]byte{}, Review: decided.Review}
	if l.Config.Spec.Catalogue != nil {
		c.Catalogue = strings.TrimPrefix(l.Config.Spec.Catalogue.Version, "v")
	}
	layers := map[string]bool{}
	for _, overlay := range l.Overlays {
		if overlay.Owner != string(landscapev1alpha1.OwnerSeed) && overlay.Owner != string(landscapev1alpha1.OwnerShoot) {
			continue
		}
		if err := c.addFolder(l.FS, overlay.Path); err != nil {
			return nil, fmt.Errorf("publishing the overlay of %s/%s: %w", overlay.Owner, overlay.Component, err)
		}
		layers[overlay.Layer] = true
	}
	if err := c.addSettings(l, layers, decided); err != nil {
		return nil, err
	}
	if err := c.addDefaultDomains(l); err != nil {
		return nil, err
	}
	return c, c.checkLimits()
}

// addFolder adds the files of an overlay. It follows links to files, as rendering does.
func (c *Content) addFolder(from fs.FS, dir string) error {
	return fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := fs.Stat(from, name)
		if err != nil {
			return err
		}
		if info.Size() > landscapes.MaxFileSize {
			return fmt.Errorf("%s is larger than %d bytes", name, landscapes.MaxFileSize)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		if isEncrypted(name, data) {
			return &EncryptedError{File: name}
		}
		c.Files[name] = data
		return c.checkLimits()
	})
}

// isEncrypted reports whether SOPS has encrypted a file: documents have a field sops, and values a
// prefix.
func isEncrypted(name string, data []byte) bool {
	if bytes.Contains(data, []byte("ENC[AES256_GCM,")) {
		return true
	}
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
		return false
	}
	for _, document := range strings.Split("\n"+string(data), "\n---") {
		var fields struct {
			SOPS map[string]any `json:"sops"`
		}
		if yaml.Unmarshal([]byte(document), &fields) == nil && fields.SOPS["mac"] != nil {
			return true
		}
	}
	return false
}

// addSettings writes the settings of landscape.yaml for Seeds and Shoots. Layers are already merged
// into it; layers with overlays are named.
func (c *Content) addSettings(l *landscapes.Landscape, layers map[string]bool, decided ObjectSettings) error {
	in := l.Config.Spec
	out := landscapev1alpha1.Landscape{Spec: landscapev1alpha1.LandscapeSpec{
		Catalogue: &landscapev1alpha1.Catalogue{Version: c.Catalogue}, GardenAPI: in.GardenAPI, FeatureGates: in.FeatureGates,
		Images: in.Images, DeletionGate: in.DeletionGate, ManagedResourceProgressingThreshold: in.ManagedResourceProgressingThreshold,
		Health: in.Health, ForceConflicts: in.ForceConflicts,
	}}
	out.Spec.Review = decided.Review
	out.Name, out.Spec.Approved = l.Config.Name, slices.Sorted(slices.Values(decided.Approved))
	for _, kind := range []landscapev1alpha1.Owner{landscapev1alpha1.OwnerSeed, landscapev1alpha1.OwnerShoot} {
		if len(in.Components[kind]) > 0 {
			if out.Spec.Components == nil {
				out.Spec.Components = map[landscapev1alpha1.Owner]map[string]landscapev1alpha1.ComponentSettings{}
			}
			out.Spec.Components[kind] = in.Components[kind]
		}
	}
	for _, t := range in.ConditionThresholds {
		if !slices.Contains(gardenConditionTypes(), t.Type) {
			out.Spec.ConditionThresholds = append(out.Spec.ConditionThresholds, t)
		}
	}
	for _, layer := range l.Layers {
		if layer != "." && layers[layer] {
			out.Spec.Layers = append(out.Spec.Layers, layer)
			// Only a folder with a landscape.yaml can have overlays.
			if err := c.addConfig(path.Join(c.Folder, layer), out.Name, landscapev1alpha1.LandscapeSpec{}); err != nil {
				return err
			}
		}
	}
	return c.addConfig(c.Folder, out.Name, out.Spec)
}

func (c *Content) addConfig(folder, name string, spec landscapev1alpha1.LandscapeSpec) error {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": landscapev1alpha1.SchemeGroupVersion.String(), "kind": "Landscape", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		return fmt.Errorf("publishing landscape.yaml: %w", err)
	}
	c.Files[path.Join(folder, "landscape.yaml")] = text
	return nil
}

// gardenConditionTypes are the condition types that only a Garden has: Seeds and Shoots have no
// components of monitoring and logging here.
func gardenConditionTypes() []gardencorev1beta1.ConditionType {
	return []gardencorev1beta1.ConditionType{
		operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
		gardencorev1beta1.ObservabilityComponentsHealthy,
	}
}

// addDefaultDomains adds the default domains, from which Shoots without a domain get theirs. Only
// annotations of their Secrets are published, never the data.
func (c *Content) addDefaultDomains(l *landscapes.Landscape) error {
	var out []byte
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.GroupVersionKind().Group != "" || d.GroupVersionKind().Kind != "Secret" || d.Namespace() != gardencorev1beta1.GardenNamespace ||
			d.Object().GetLabels()[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleDefaultDomain {
			continue
		}
		bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		bare.SetNamespace(d.Namespace())
		bare.SetName(d.Name())
		bare.SetLabels(map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleDefaultDomain})
		annotations := map[string]string{}
		for k, v := range d.Object().GetAnnotations() {
			if strings.HasPrefix(k, "dns.gardener.cloud/") {
				annotations[k] = v
			}
		}
		bare.SetAnnotations(annotations)
		text, err := yaml.Marshal(bare.Object)
		if err != nil {
			return fmt.Errorf("publishing default domains: %w", err)
		}
		out = append(append(out, "---\n"...), text...)
	}
	if len(out) > 0 {
		c.Files[path.Join(c.Folder, domainsFile)] = out
	}
	return nil
}

// DefaultDomains returns the default domains as a file of declarations, or nil if there are none.
func (c *Content) DefaultDomains() []byte { return c.Files[path.Join(c.Folder, domainsFile)] }

// checkLimits enforces the limits.
func (c *Content) checkLimits() error {
	size := 0
	for _, data := range c.Files {
		size += len(data)
	}
	if len(c.Files) > MaxFiles || size > MaxSize {
		return fmt.Errorf("overlays of Seeds and Shoots have %d files with %d bytes; at most %d files with %d bytes can be published", len(c.Files), size, MaxFiles, MaxSize)
	}
	return nil
}
