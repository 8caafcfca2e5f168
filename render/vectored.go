package render

// nameImages replaces container images that are only a name of the image vector by the chosen
// image, because YAML files cannot use the vector. Kustomize does the same with `images`.
func nameImages(objects []Object, chosen map[string]string) {
	for _, o := range objects {
		nameImagesIn(o.Object, chosen)
	}
}

func nameImagesIn(value any, chosen map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == "containers" || key == "initContainers" {
				nameContainers(inner, chosen)
				continue
			}
			nameImagesIn(inner, chosen)
		}
	case []any:
		for _, inner := range v {
			nameImagesIn(inner, chosen)
		}
	}
}

func nameContainers(value any, chosen map[string]string) {
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
