// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/hack/corpus"
	"github.com/pergola-dev/pergola/schemas"
)

// errorLines has a line for each error about a change; it is empty if it is allowed.
type errorLines []string

// errorsOfRules returns the verdict of package schemas.
func errorsOfRules(t testing.TB, object, old *unstructured.Unstructured) (errs errorLines, fields []string) {
	t.Helper()
	found, err := schemas.Validate(t.Context(), []schemas.Input{{Object: object, Old: old}}, schemas.Options{})
	require.NoError(t, err)
	for _, v := range found {
		if v.Severity == schemas.SeverityError {
			errs = append(errs, fmt.Sprintf("%s %s %s", v.Field, causeType(v.Type), v.Message))
			fields = append(fields, v.Field)
		}
	}
	slices.Sort(errs)
	return errs, fields
}

// errorsOfServer returns the verdict of the API server.
func errorsOfServer(t testing.TB, err error) (errs errorLines, fields []string, byWebhook bool) {
	t.Helper()
	if err == nil {
		return nil, nil, false
	}
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	s := status.Status()
	if match := regexp.MustCompile(`unknown field "([^"]+)"`).FindAllStringSubmatch(s.Message, -1); len(match) > 0 {
		for _, m := range match {
			fields = append(fields, m[1])
		}
		return errorLines{s.Message}, fields, false
	}
	require.Equal(t, int32(422), s.Code, s.Message)
	require.NotNil(t, s.Details, s.Message)
	for _, cause := range s.Details.Causes {
		errs = append(errs, fmt.Sprintf("%s %s %s", cause.Field, cause.Type, cause.Message))
		if cause.Field != "<nil>" && !strings.HasPrefix(cause.Message, "some validation rules were not checked") {
			fields = append(fields, cause.Field)
		}
	}
	require.NotEmpty(t, errs, s.Message)
	slices.Sort(errs)
	return errs, fields, strings.Contains(s.Message, webhookValidate)
}

// objectChange is a new object, or a change of an old one.
type objectChange struct{ object, old *unstructured.Unstructured }

// compareErrors compares the verdicts of the API server and the rules, and returns the server's.
func (w *testServer) compareErrors(t *testing.T, c objectChange) errorLines {
	t.Helper()
	raw, rawFields := errorsOfRules(t, c.object, c.old)
	object, live := c.object.DeepCopy(), (*unstructured.Unstructured)(nil)
	if c.old != nil {
		old := c.old.DeepCopy()
		if status, ok := object.Object["status"]; ok {
			// it is a subresource, so it must exist before
			old.Object["status"] = status
		}
		if deletion := object.GetDeletionTimestamp(); deletion != nil {
			old.SetDeletionTimestamp(deletion)
		}
		var err error
		if live, err = w.createUnvalidated(t, old); err != nil {
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			t.Logf("the definition does not let the old object be: %v", err)
			return raw
		}
		object.SetResourceVersion(live.GetResourceVersion())
		if object.GetDeletionTimestamp() != nil {
			object.SetDeletionTimestamp(live.GetDeletionTimestamp())
			object.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
			object.SetFinalizers(live.GetFinalizers())
		}
	} else {
		w.ensureNamespace(object)
		object.SetResourceVersion("")
	}
	send := func(c client.Client, object *unstructured.Unstructured) error {
		if live != nil {
			return c.Update(w.ctx, object, client.DryRunAll)
		}
		return c.Create(w.ctx, object, client.DryRunAll)
	}
	stored := object.DeepCopy()
	if err := send(w.unvalidated, stored); err != nil {
		// The definition rejects it, and no webhook is called.
		said, fields, _ := errorsOfServer(t, err)
		if reason, known := stricterDefinitions[fields[0]]; known {
			t.Log(reason)
			return said
		}
		require.NotEmpty(t, raw, "only the API server refuses it: %v", said)
		for _, field := range fields {
			assert.True(t, slices.ContainsFunc(rawFields, func(known string) bool { return isSameField(known, field) }), "the definition refuses %s, the rules refuse %v: %v", field, rawFields, said)
		}
		w.byDefinition++
		return said
	}
	if live != nil {
		live = w.handler.defaults.withDefaults(live)
	}
	wanted, _ := errorsOfRules(t, stored, live)
	said, _, byWebhook := errorsOfServer(t, send(w.api, object.DeepCopy()))
	assert.Equal(t, wanted, said)
	assert.True(t, byWebhook || len(said) == 0, "%v", said)
	switch {
	case byWebhook:
		w.byWebhook++
	case len(raw) > 0:
		// The API server drops fields that only it may write, and the finding with them.
		_, status := c.object.Object["status"]
		assert.True(t, status || c.object.GetDeletionTimestamp() != nil, "only the rules refuse it: %v", raw)
	default:
		w.allowed++
	}
	return said
}

// isSameField reports whether the field of a definition matches that of a rule. Definitions write
// keys of maps and lists differently, and may stop at a parent.
func isSameField(rule, definition string) bool {
	plain := func(path string) string { return strings.NewReplacer(`"`, "", "[", ".", "]", "").Replace(path) }
	rule, definition = plain(rule), plain(definition)
	return rule == definition || strings.HasPrefix(rule, definition+".") || strings.HasPrefix(definition, rule+".")
}

// stricterDefinitions are fields for which the definitions of crd mode are stricter than upstream's
// API server and the rules.
var stricterDefinitions = map[string]string{
	"spec.machineImages[0].versions": "images of a NamespacedCloudProfile need versions: their type is that of a CloudProfile",
	"metadata.name":                  "an API server lets objects of definitions have DNS names only; upstream's lets a BackupEntry have others",
}

// checkCorpus: the API server with definitions and webhooks accepts and rejects the same Gardens
// and Shoots as upstream.
func checkCorpus(t *testing.T, w *testServer) {
	folder := corpus.Dir(t)
	files, err := filepath.Glob(filepath.Join(folder, "cases", "*.yaml"))
	require.NoError(t, err)
	count := 0
	for _, file := range files {
		name := filepath.Base(file)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		header := map[string]string{}
		for _, line := range regexp.MustCompile(`(?m)^# (\w+): (.*)$`).FindAllStringSubmatch(string(data), -1) {
			header[line[1]] = line[2]
		}
		if header["needs"] != "" {
			continue // needs other objects, which no static rule reads
		}
		count++
		t.Run(name, func(t *testing.T) {
			objects := decodeManifest(t, data)
			c := objectChange{object: objects[len(objects)-1]}
			if len(objects) > 1 {
				c.old = objects[0]
			}
			said := w.compareErrors(t, c)
			if header["expect"] != "invalid" {
				assert.Empty(t, said)
				return
			}
			assert.True(t, slices.ContainsFunc(said, func(line string) bool {
				field, _, _ := strings.Cut(line, " ")
				return isSameField(header["field"], field)
			}), "upstream refuses %s (%s), the API server %v", header["field"], header["why"], said)
		})
	}
	require.Greater(t, count, 100)
}
