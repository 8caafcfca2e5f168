// SPDX-License-Identifier: Apache-2.0

package render

// setVectorImages replaces container images that are only a name of the image vector by the chosen
// image, because YAML files cannot use the vector. Kustomize does the same with `images`.
func setVectorImages(objects []Object, chosen map[string]string) {
	for _, o := range objects {
		setVectorImagesIn(o.Object, chosen)
	}
}

func setVectorImagesIn(value any, chosen map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "containers" || key == "initContainers" {
				setContainerImages(inner, chosen)
				continue
			}
			setVectorImagesIn(inner, chosen)
		}
	case []any:
		for _, inner := range v {
			setVectorImagesIn(inner, chosen)
		}
	}
}

func setContainerImages(value any, chosen map[string]string) {
	list, _ := value.([]any)
	for _, item := range list {
		container, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, _ := container["image"].(string)
		if image, ok := chosen[name]; ok {
			container["image"] = image
		}
	}
}
