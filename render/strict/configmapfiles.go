// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkConfigMapFiles parses the values of a ConfigMap with keys *.yaml, *.yml or *.json, because
// programs read them as such. It skips templates.
func checkConfigMapFiles(object map[string]any) []structure.Finding {
	var out []structure.Finding
	data, _ := object["data"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[name].(string)
		if strings.Contains(text, "{{") {
			continue
		}
		var err error
		language := "YAML"
		switch path.Ext(name) {
		case ".yaml", ".yml":
			err = readYAML(text)
		case ".json":
			language = "JSON"
			var any json.RawMessage
			if text != "" {
				err = readJSON(text, &any)
			}
		}
		if err != nil {
			// The messages name lines and expected tokens, and for JSON single characters.
			out = append(out, structure.Finding{Path: fieldpath.Path{"data", fieldpath.Key(name)}, Type: "Invalid", Message: fmt.Sprintf("is not %s: %s", language, strings.TrimPrefix(err.Error(), "yaml: "))})
		}
	}
	return out
}

// readJSON adds the line of a fault to the error.
func readJSON(text string, into any) error {
	err := json.Unmarshal([]byte(text), into)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 && int(syntax.Offset) <= len(text) {
		return fmt.Errorf("line %d: %w", 1+strings.Count(text[:syntax.Offset-1], "\n"), err)
	}
	return err
}

func readYAML(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// checkScrapeTimes checks that a scrape times out before the next one, or Prometheus rejects the
// configuration. Source: the operator's pkg/prometheus, CompareScrapeTimeoutToScrapeInterval.
func checkScrapeTimes(at fieldpath.Path, value any, interval, timeout string) []structure.Finding {
	object, _ := value.(map[string]any)
	every, set := object[interval].(string)
	longest, bounded := object[timeout].(string)
	if !set || !bounded {
		return nil
	}
	between, err := time.ParseDuration(every)
	if err != nil {
		return nil
	}
	if most, err := time.ParseDuration(longest); err == nil && most > between {
		return []structure.Finding{{Path: at.Append(timeout), Type: "Invalid", Message: fmt.Sprintf("%s is longer than %s, which is %s", longest, interval, every)}}
	}
	return nil
}
