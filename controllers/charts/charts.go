// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source"
)

// chartLimits bound a chart. Large extensions need a tenth of them.
var chartLimits = source.Limits{Transferred: 16 << 20, Unpacked: 64 << 20, File: 4 << 20, Object: 4 << 20, Files: 5000}

const (
	// pullTimeout is the timeout of one request to a registry.
	pullTimeout = 30 * time.Second
	// tagCacheTTL is how long the digest of a tag is cached.
	tagCacheTTL = time.Minute
	// maxCharts is the maximum number of charts in memory.
	maxCharts = 64
)

// Credentials are the data of the Secrets that a chart's reference names; they are nil for none.
type Credentials struct {
	// Pull is a Secret of type kubernetes.io/dockerconfigjson.
	Pull map[string][]byte
	// CA has the CA certificates of the registry as PEM.
	CA []byte
}

// Puller pulls charts. The zero value works, and caches them only in memory. It is safe for
// concurrent use.
type Puller struct {
	// Dir caches charts across restarts.
	Dir string
	// Proxy is the proxy of the connections. Zero means none.
	Proxy source.Proxy
	Clock clock.PassiveClock

	mu     sync.Mutex
	charts map[string]render.Chart
	tags   map[string]resolvedTag
}

// resolvedTag is the last known digest of a tag.
type resolvedTag struct {
	digest     string
	resolvedAt time.Time
}

// PullAll returns charts by their references. A chart that cannot be pulled has a Problem. read
// returns the data of a Secret that a reference names.
func (p *Puller) PullAll(ctx context.Context, named []gardencorev1.OCIRepository, read func(secret string) (map[string][]byte, error)) map[string]render.Chart {
	out := map[string]render.Chart{}
	for _, n := range named {
		ref, err := render.ParseChartReference(n)
		if err != nil || out[ref.String()].Digest != "" {
			continue // the renderer reports it
		}
		chart, err := p.Pull(ctx, n, func() (Credentials, error) { return CredentialsOf(n, read) })
		if err != nil {
			chart = render.Chart{Problem: err.Error()}
		}
		out[ref.String()] = chart
	}
	return out
}

// CredentialsOf reads the Secrets that a reference names.
func CredentialsOf(n gardencorev1.OCIRepository, read func(string) (map[string][]byte, error)) (Credentials, error) {
	var out Credentials
	if n.PullSecretRef != nil {
		data, err := read(n.PullSecretRef.Name)
		if err != nil {
			return out, err
		}
		out.Pull = data
	}
	if n.CABundleSecretRef != nil {
		data, err := read(n.CABundleSecretRef.Name)
		if err != nil {
			return out, err
		}
		if out.CA = data[keyCABundle]; len(out.CA) == 0 {
			return out, fmt.Errorf("the Secret %s has no key %s", n.CABundleSecretRef.Name, keyCABundle)
		}
	}
	return out, nil
}

// keyCABundle is the key of a Secret with certificates (upstream's).
const keyCABundle = "bundle.crt"

// Pull returns a chart. It pulls a digest once. It resolves a tag again after tagCacheTTL, and
// returns the previous chart while the registry does not answer.
func (p *Puller) Pull(ctx context.Context, named gardencorev1.OCIRepository, with func() (Credentials, error)) (render.Chart, error) {
	ref, err := render.ParseChartReference(named)
	if err != nil {
		return render.Chart{}, err
	}
	p.mu.Lock()
	known := p.charts[ref.Digest]
	if ref.Digest == "" {
		if seen := p.tags[ref.String()]; seen.digest != "" && p.clockOrDefault().Since(seen.resolvedAt) < tagCacheTTL {
			known = p.charts[seen.digest]
		}
	}
	p.mu.Unlock()
	if known.Digest != "" {
		return known, nil
	}
	chart, err := p.pullFromRegistry(ctx, ref, with)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if former := p.charts[p.tags[ref.String()].digest]; ref.Digest == "" && former.Digest != "" {
			return former, nil
		}
		return chart, fmt.Errorf("chart %s cannot be pulled: %w", ref, err)
	}
	p.storeChart(ref, chart)
	return chart, nil
}

func (p *Puller) clockOrDefault() clock.PassiveClock {
	return cmp.Or[clock.PassiveClock](p.Clock, clock.RealClock{})
}

func (p *Puller) storeChart(ref render.ChartReference, chart render.Chart) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.charts) >= maxCharts || p.charts == nil {
		p.charts, p.tags = map[string]render.Chart{}, map[string]resolvedTag{}
	}
	p.charts[chart.Digest] = chart
	p.tags[ref.String()] = resolvedTag{chart.Digest, p.clockOrDefault().Now()}
}

func (p *Puller) pullFromRegistry(ctx context.Context, ref render.ChartReference, with func() (Credentials, error)) (render.Chart, error) {
	credentials, err := with()
	if err != nil {
		return render.Chart{}, err
	}
	remote, err := p.openRegistry(ref, credentials)
	if err != nil {
		return render.Chart{}, err
	}
	defer remote.Close()
	head, err := remote.Resolve(ctx)
	if err != nil {
		return render.Chart{}, err
	}
	snapshot, err := remote.Fetch(ctx, head)
	if err != nil {
		return render.Chart{}, err
	}
	files, err := filesOf(snapshot.FS)
	if err != nil {
		return render.Chart{}, err
	}
	return render.NewChart(head.Commit, files)
}

func (p *Puller) openRegistry(ref render.ChartReference, with Credentials) (source.Remote, error) {
	options := source.Options{
		URL: "oci://" + ref.Repository, Ref: landscapev1alpha1.Reference{Tag: ref.Tag, Digest: ref.Digest},
		Timeout: pullTimeout, Proxy: p.Proxy, Limits: chartLimits, Clock: p.clockOrDefault(),
	}
	if p.Dir != "" {
		sum := sha256.Sum256([]byte(ref.Repository))
		options.Dir = filepath.Join(p.Dir, hex.EncodeToString(sum[:8]))
	}
	if len(with.Pull) > 0 {
		credentials, err := source.CredentialsOf(options.URL, with.Pull)
		if err != nil {
			return nil, err
		}
		options.Credentials = credentials
	}
	if len(with.CA) > 0 {
		options.Credentials.CA = with.CA
	}
	return source.NewRemote(options)
}

// filesOf reads the files of a chart, which are in one folder of the archive.
func filesOf(archive fs.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(archive, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is a link, but a chart may have only plain files", path.Base(name))
		}
		_, inside, ok := strings.Cut(name, "/")
		if !ok {
			return nil // outside the chart's folder
		}
		out[inside], err = fs.ReadFile(archive, name)
		return err
	})
	return out, err
}
