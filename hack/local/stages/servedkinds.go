// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/hack/local/restclient"
)

// servedKindIndex has the known kinds that an API server serves.
type servedKindIndex struct {
	// group version -> its OpenAPI document, from the index
	documents map[string]string
	kinds     map[string]map[string]bool // group version -> kinds
}

func (s *servedKindIndex) has(stage Stage) bool { return s.kinds[stage.GroupVersion][stage.Kind] }

// refresh reads which kinds of the Stages are served. kwok needs both discovery and the OpenAPI
// document of a kind; the latter comes later, so it decides. The index has every document with a
// hash of its content.
func (s *servedKindIndex) refresh(ctx context.Context, client *restclient.Client, all []Stage) error {
	if s.documents == nil {
		s.documents, s.kinds = map[string]string{}, map[string]map[string]bool{}
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := client.Get(ctx, "/openapi/v3", &index); err != nil {
		return fmt.Errorf("reading OpenAPI index: %w", err)
	}
	wanted := map[string]bool{}
	for _, stage := range all {
		wanted[stage.GroupVersion] = true
	}
	for groupVersion := range wanted {
		document := index.Paths[strings.TrimPrefix(apiPath(groupVersion), "/")].URL
		if document == s.documents[groupVersion] {
			continue
		}
		kinds := map[string]bool{}
		if document != "" {
			var err error
			if kinds, err = servedKinds(ctx, client, groupVersion, document); err != nil {
				return err
			}
		}
		s.kinds[groupVersion], s.documents[groupVersion] = kinds, document
	}
	return nil
}

// servedKinds returns the kinds of a group version that are in discovery and OpenAPI.
func servedKinds(ctx context.Context, client *restclient.Client, groupVersion, openAPI string) (map[string]bool, error) {
	var document struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := client.Get(ctx, openAPI, &document); err != nil {
		return nil, fmt.Errorf("reading OpenAPI of %s: %w", groupVersion, err)
	}
	var list struct {
		Resources []struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"resources"`
	}
	if err := client.Get(ctx, apiPath(groupVersion), &list); err != nil {
		return nil, fmt.Errorf("reading resources of %s: %w", groupVersion, err)
	}
	kinds := map[string]bool{}
	for _, resource := range list.Resources {
		for path := range document.Paths {
			if strings.HasSuffix(path, "/"+resource.Name+"/{name}") {
				kinds[resource.Kind] = true
				break
			}
		}
	}
	return kinds, nil
}

func apiPath(groupVersion string) string {
	if strings.Contains(groupVersion, "/") {
		return "/apis/" + groupVersion
	}
	return "/api/" + groupVersion
}
