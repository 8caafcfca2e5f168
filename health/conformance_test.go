// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/health"
)

// healthCase is one file of corpus/health.
type healthCase struct {
	file   string
	header map[string]string
	obj    *unstructured.Unstructured
}

func healthCases(t *testing.T) []healthCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "health", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := make([]healthCase, 0, len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		c := healthCase{file: filepath.Base(file), header: map[string]string{}, obj: &unstructured.Unstructured{}}
		for line := range strings.Lines(string(raw)) {
			if !strings.HasPrefix(line, "# ") {
				break
			}
			if key, value, ok := strings.Cut(strings.TrimSpace(line[2:]), ": "); ok {
				c.header[key] = value
			}
		}
		require.NoError(t, yaml.Unmarshal(raw, &c.obj.Object), c.file)
		out = append(out, c)
	}
	return out
}

// identity returns the second input of the Seed checks.
func (c healthCase) identity(t *testing.T) *health.Gardener {
	t.Helper()
	raw, ok := c.header["identity"]
	if !ok || raw == "null" {
		return nil
	}
	var g health.Gardener
	require.NoError(t, json.Unmarshal([]byte(raw), &g))
	return &g
}

// namedCheck runs a named function of the corpus; functions of Check are judged through it.
func namedCheck(t *testing.T, c healthCase) (err error, viaCheck bool) {
	t.Helper()
	switch c.header["check"] {
	case "CheckSeed":
		return health.CheckSeed(c.obj, c.identity(t)), false
	case "CheckSeedForMigration":
		return health.CheckSeedForMigration(c.obj, c.identity(t)), false
	case "CheckSeedIsUpToDate":
		return health.CheckSeedIsUpToDate(c.obj, c.identity(t)), false
	case "CheckRequiredSeedConditions":
		_, err := health.CheckRequiredSeedConditions(c.obj)
		return err, false
	case "CheckManagedResource":
		return health.CheckManagedResource(c.obj), true
	case "CheckManagedResourceApplied":
		return health.CheckManagedResourceApplied(c.obj), false
	case "CheckManagedResourceHealthy":
		return health.CheckManagedResourceHealthy(c.obj), false
	case "CheckManagedResourceProgressing":
		return health.CheckManagedResourceProgressing(c.obj), false
	case "CheckExtensionObject":
		return health.CheckExtensionObject(c.obj), c.obj.GetKind() != "Pod"
	case "CheckEtcd":
		return health.CheckEtcd(c.obj), true
	case "CheckMachineDeployment":
		return health.CheckMachineDeployment(c.obj), true
	case "CheckNode":
		return health.CheckNode(c.obj), true
	case "CheckPod":
		return health.CheckPod(c.obj), true
	case "CheckAPIService":
		return health.CheckAPIService(c.obj), true
	case "CheckDeployment":
		return health.CheckDeployment(c.obj), true
	case "CheckStatefulSet":
		return health.CheckStatefulSet(c.obj), true
	case "CheckDaemonSet":
		return health.CheckDaemonSet(c.obj), true
	case "CheckReplicaSet":
		return health.CheckReplicaSet(c.obj), true
	case "CheckReplicationController":
		return health.CheckReplicationController(c.obj), true
	case "CheckJob":
		return health.CheckJob(c.obj), true
	case "CheckService":
		return health.CheckService(c.obj), true
	case "CheckCustomResourceDefinition":
		return health.CheckCustomResourceDefinition(c.obj), true
	case "CheckPrometheus":
		return health.CheckPrometheus(c.obj), true
	case "CheckAlertmanager":
		return health.CheckAlertmanager(c.obj), true
	case "CheckVerticalPodAutoscaler":
		return health.CheckVerticalPodAutoscaler(c.obj), true
	case "CheckCertificate":
		return health.CheckCertificate(c.obj), true
	case "CheckCertificateIssuer":
		return health.CheckCertificateIssuer(c.obj), true
	}
	require.Fail(t, "no function is known for check "+c.header["check"])
	return nil, false
}

func TestConformanceGardener(t *testing.T) {
	for _, c := range healthCases(t) {
		if c.header["tool"] != "gardener" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			err, viaCheck := namedCheck(t, c)
			want := c.header["expect"] == "healthy"
			assert.Equal(t, want, err == nil, "named check says %v; %s", err, c.header["why"])
			if viaCheck {
				v := health.Check(c.obj)
				assert.Equal(t, want, v.Healthy, "%+v; %s", v, c.header["why"])
				assert.Equal(t, want, v.Reason != v.Kind+"Unhealthy", "reason %q", v.Reason)
			}
		})
	}
}

func TestConformanceGardenerProgressing(t *testing.T) {
	for _, c := range healthCases(t) {
		if c.header["tool"] != "gardener-progressing" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			v := health.Check(c.obj)
			assert.Equal(t, c.header["expect"] == "progressing", v.Progressing, "%+v; %s", v, c.header["why"])
		})
	}
}

func TestConformanceKStatus(t *testing.T) {
	for _, c := range healthCases(t) {
		if c.header["tool"] != "kstatus" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			var opts []health.Option
			if clock, _, _ := strings.Cut(c.header["clock"], " "); clock != "" {
				now, err := time.Parse(time.RFC3339, clock)
				require.NoError(t, err)
				opts = append(opts, health.WithTime(now))
			}
			assert.Equal(t, c.header["expect"], string(health.Check(c.obj, opts...).Status), c.header["case"])
		})
	}
}

// TestConformanceArgo compares built-in checks and scripts of Argo; the function Argo has both.
func TestConformanceArgo(t *testing.T) {
	for _, c := range healthCases(t) {
		if tool := c.header["tool"]; tool != "argo" && tool != "argo-lua" {
			continue
		}
		t.Run(c.file, func(t *testing.T) {
			want := c.header["expect"]
			if want == "None" {
				want = ""
			}
			assert.Equal(t, want, health.Argo(c.obj), c.header["why"])
		})
	}
}

// TestConformanceCrosswalk compares the projections on every object of the corpus, from any tool.
func TestConformanceCrosswalk(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "health-crosswalk.tsv"))
	require.NoError(t, err)
	type row struct{ kstatus, argo string }
	rows := map[string]row{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Split(strings.TrimRight(line, "\n"), "\t"); len(f) == 6 && f[0] != "file" {
			rows[f[0]] = row{f[4], f[5]}
		}
	}
	require.NotEmpty(t, rows)
	for _, c := range healthCases(t) {
		t.Run(c.file, func(t *testing.T) {
			want, ok := rows[c.file]
			require.True(t, ok, "not in the crosswalk")
			argo := health.ArgoBuiltIn(c.obj)
			if argo == "" {
				argo = "none"
			}
			assert.Equal(t, want.argo, argo)
			if c.header["clock"] == "" {
				status, message := health.KStatus(c.obj)
				assert.Equal(t, want.kstatus, string(status), message)
			}
		})
	}
}
