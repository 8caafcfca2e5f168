package main

import (
	"encoding/base64"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// puller keeps the charts of Extensions in the cache of the command.
func puller(cmd *cobra.Command) *charts.Puller {
	p := &charts.Puller{Clock: clock.RealClock{}}
	if dir, err := cacheDir(cmd); err == nil {
		p.Dir = filepath.Join(dir, "charts")
	}
	return p
}

// withCharts pulls what the Extensions of a landscape name, with the Secrets that it declares.
func withCharts(cmd *cobra.Command, l *landscapes.Landscape) render.Setting {
	return render.WithCharts(func(wanted []gardencorev1.OCIRepository) map[string]render.Chart {
		return puller(cmd).All(cmd.Context(), wanted, func(name string) (map[string][]byte, error) { return declaredSecret(l, name) })
	})
}

// declaredSecret gives the content of a Secret of namespace garden.
func declaredSecret(l *landscapes.Landscape, name string) (map[string][]byte, error) {
	d, ok := l.Find(schema.GroupKind{Kind: "Secret"}, "garden", name)
	if !ok {
		return nil, fmt.Errorf("the Secret %s that it is pulled with is not in this landscape", name)
	}
	if d.Secret == landscapes.SecretEncrypted {
		return nil, fmt.Errorf("the Secret %s that it is pulled with is encrypted, and no key opens it", name)
	}
	out := map[string][]byte{}
	for _, field := range []string{"data", "stringData"} {
		values, _, err := unstructured.NestedStringMap(d.Object().Object, field)
		if err != nil {
			return nil, fmt.Errorf("the Secret %s: %s is no map of texts", name, field)
		}
		for key, text := range values {
			value := []byte(text)
			if field == "data" {
				if value, err = base64.StdEncoding.DecodeString(text); err != nil {
					return nil, fmt.Errorf("the Secret %s: %s[%s] is not base64", name, field, key)
				}
			}
			out[key] = value
		}
	}
	return out, nil
}
