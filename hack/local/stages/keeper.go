package stages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/hack/local/restclient"
)

const (
	ownerLabel = "app.kubernetes.io/managed-by"
	ownerValue = "pergola-local"

	stagesPath = "/apis/kwok.x-k8s.io/v1alpha1/stages"
)

// Keeper keeps those Stages in a cluster whose resource the API server serves, and no others.
type Keeper struct {
	Client *restclient.Client
	Stages []Stage
	// Interval is the time between two looks at the API server.
	Interval time.Duration
	// Log takes what changed and what failed.
	Log io.Writer

	seen    map[string]string          // group version -> its OpenAPI document, as the index names it
	served  map[string]map[string]bool // group version -> served kinds
	applied map[string]bool            // stage name -> is in the cluster
}

// Run keeps the Stages until ctx is done. Errors are logged, once each, and tried again.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.Interval)
	defer tick.Stop()
	lastError := ""
	for {
		err := k.Sync(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && lastError != "":
			k.logf("API server answers again")
			lastError = ""
		case err != nil && err.Error() != lastError:
			lastError = err.Error()
			k.logf("error: %s", lastError)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sync looks at the API server once and adds and removes Stages accordingly. When nothing has changed
// it costs one small request.
func (k *Keeper) Sync(ctx context.Context) error {
	if k.applied == nil {
		if err := k.adopt(ctx); err != nil {
			return err
		}
	}
	if err := k.discover(ctx); err != nil {
		return err
	}
	for _, stage := range k.Stages {
		wanted := k.served[stage.GroupVersion][stage.Kind]
		known := k.applied[stage.Name]
		if wanted == known {
			continue
		}
		if wanted {
			if err := k.Client.Apply(ctx, stagesPath+"/"+stage.Name, stage.Object); err != nil {
				return fmt.Errorf("adding stage %s: %w", stage.Name, err)
			}
			k.logf("%s %s is served: added stage %s", stage.GroupVersion, stage.Kind, stage.Name)
		} else {
			if err := k.Client.Delete(ctx, stagesPath+"/"+stage.Name); err != nil {
				return fmt.Errorf("removing stage %s: %w", stage.Name, err)
			}
			k.logf("%s %s is not served any more: removed stage %s", stage.GroupVersion, stage.Kind, stage.Name)
		}
		k.applied[stage.Name] = wanted
	}
	return nil
}

// adopt removes Stages of an earlier version that are not among ours now. Those that are, are applied
// anew by the first sync.
func (k *Keeper) adopt(ctx context.Context) error {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := k.Client.Get(ctx, stagesPath+"?labelSelector="+ownerLabel+"%3D"+ownerValue, &list); err != nil {
		return fmt.Errorf("listing stages: %w", err)
	}
	ours := map[string]bool{}
	for _, stage := range k.Stages {
		ours[stage.Name] = true
	}
	for _, item := range list.Items {
		if ours[item.Metadata.Name] {
			continue
		}
		if err := k.Client.Delete(ctx, stagesPath+"/"+item.Metadata.Name); err != nil {
			return fmt.Errorf("removing outdated stage %s: %w", item.Metadata.Name, err)
		}
	}
	k.applied, k.seen, k.served = map[string]bool{}, map[string]string{}, map[string]map[string]bool{}
	return nil
}

// discover learns which kinds are served. kwok needs both discovery and the OpenAPI document of a kind
// and the latter comes later, so that is what counts; its index carries a hash of every document.
func (k *Keeper) discover(ctx context.Context) error {
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := k.Client.Get(ctx, "/openapi/v3", &index); err != nil {
		return fmt.Errorf("reading OpenAPI index: %w", err)
	}
	wanted := map[string]bool{}
	for _, stage := range k.Stages {
		wanted[stage.GroupVersion] = true
	}
	for groupVersion := range wanted {
		url := index.Paths[strings.TrimPrefix(apiPath(groupVersion), "/")].URL
		if url == k.seen[groupVersion] {
			continue
		}
		kinds := map[string]bool{}
		if url != "" {
			var err error
			if kinds, err = k.servedKinds(ctx, groupVersion, url); err != nil {
				return err
			}
		}
		k.served[groupVersion], k.seen[groupVersion] = kinds, url
	}
	return nil
}

// servedKinds returns the kinds of a group version that discovery lists and OpenAPI describes.
func (k *Keeper) servedKinds(ctx context.Context, groupVersion, openAPI string) (map[string]bool, error) {
	var document struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := k.Client.Get(ctx, openAPI, &document); err != nil {
		return nil, fmt.Errorf("reading OpenAPI of %s: %w", groupVersion, err)
	}
	var list struct {
		Resources []struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"resources"`
	}
	if err := k.Client.Get(ctx, apiPath(groupVersion), &list); err != nil {
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

func (k *Keeper) logf(format string, args ...any) {
	fmt.Fprintf(k.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func digestOf(all []Stage) string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, stage := range all {
		// A map of decoded YAML always encodes; keys come out sorted.
		_ = encoder.Encode(stage.Object)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
