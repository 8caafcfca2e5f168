// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// withoutDeprecatedFields returns an equivalent kustomization without deprecated fields: for each
// of them krusty prints a warning to standard error in every build. readKustomization has already
// moved bases and imageTags. The order of patches is that of patchesOf.
func withoutDeprecatedFields(files filesys.FileSystem, dir string, k types.Kustomization) types.Kustomization {
	//lint:ignore SA1019 deprecated fields are what this is about
	merges, operations, labels := k.PatchesStrategicMerge, k.PatchesJson6902, k.CommonLabels
	patches := make([]types.Patch, 0, len(merges)+len(k.Patches)+len(operations))
	for _, merge := range merges {
		patch := types.Patch{Patch: string(merge)}
		if files.Exists(path.Join(dir, string(merge))) {
			patch = types.Patch{Path: string(merge)}
		}
		patches = append(patches, patch)
	}
	k.Patches = slices.Concat(patches, k.Patches, operations)
	if len(labels) > 0 {
		k.Labels = append(slices.Clone(k.Labels), types.Label{Pairs: labels, IncludeSelectors: true})
	}
	//lint:ignore SA1019 deprecated fields are what this is about
	k.PatchesStrategicMerge, k.PatchesJson6902, k.CommonLabels = nil, nil, nil
	return k
}

// removeDeprecatedFields rewrites the kustomizations that another one includes.
func removeDeprecatedFields(files filesys.FileSystem, root, except string) error {
	return files.Walk(root, func(file string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() || file == except || file != kustomizationFile(files, path.Dir(file)) {
			return err
		}
		k, found := readKustomization(files, file, func(p string) string { return p })
		if len(found) > 0 {
			return nil // no kustomization includes it, or it would have been reported
		}
		text, err := yaml.Marshal(withoutDeprecatedFields(files, path.Dir(file), k.Kustomization))
		if err != nil {
			return err
		}
		return files.WriteFile(file, text)
	})
}
