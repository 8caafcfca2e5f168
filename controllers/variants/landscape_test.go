package variants

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// clusters that run, and Shoots of the landscape.
const (
	runtimeCluster = "runtime"
	seedCluster    = "local"

	shootAESGCM    = "aesgcm"
	shootSecretbox = "secretbox"
	shootGuarded   = "guarded"
	shootAvailable = "local" // its control plane survives the failure of a zone
)

// controlPlane is the namespace of the control plane of a Shoot.
func controlPlane(shoot string) string { return "shoot--local--" + shoot }

// writeLandscape makes the landscape: that of the demonstration, and what is in testdata over it.
func (e *environment) writeLandscape() (string, error) {
	dir := filepath.Join(e.dir, "landscape")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(e.Root, "landscapes/local"))); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(dir, "golden")); err != nil {
		return "", err
	}
	over := os.DirFS("testdata/landscape")
	err := fs.WalkDir(over, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(over, name)
		if err != nil {
			return err
		}
		return e.writeFile(filepath.Join(dir, name), string(text))
	})
	if err != nil {
		return "", err
	}
	for _, edit := range []struct{ file, old, new string }{
		{"gardenconfig/cloudprofile.yaml", "    - version: 1.35.0\n", "    - version: 1.36.0\n      classification: preview\n    - version: 1.35.0\n"},
		{"gardenconfig/cloudprofile.yaml", "    zones:\n    - name: \"0\"\n", "    zones:\n    - name: \"0\"\n    - name: \"1\"\n    - name: \"2\"\n"},
		{"seeds/local.yaml", "    zones:\n    - \"0\"\n", "    zones:\n    - \"0\"\n    - \"1\"\n    - \"2\"\n"},
	} {
		if err := replace(filepath.Join(dir, edit.file), edit.old, edit.new); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// writeFile fills in what is known only now: addresses, certificates and keys.
func (e *environment) writeFile(name, text string) error {
	parsed, err := template.New(filepath.Base(name)).Option("missingkey=error").Funcs(template.FuncMap{
		"indent": func(n int, text string) string {
			return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", n))
		},
	}).Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, e.server); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o600)
}

func replace(file, old, new string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), old) {
		return fmt.Errorf("%s does not contain %q", file, old)
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, new)), 0o600)
}

// prepareSeed puts into the namespaces of control planes what Shoots refer to, as copies of what their project has (components/kubernetes/README.md).
func (e *environment) prepareSeed(landscape string) error {
	client, err := localClient(seedCluster)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for shoot, name := range map[string]string{shootAESGCM: "audited", shootSecretbox: "authentication"} {
		data, err := declared(filepath.Join(landscape, "projects/local", shoot+".yaml"), name)
		if err != nil {
			return err
		}
		namespace := controlPlane(shoot)
		_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ref-" + name}, Data: data}
		if _, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, object, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// declared is the data of a ConfigMap in a file.
func declared(file, name string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var object corev1.ConfigMap
		if err := decoder.Decode(&object); err != nil {
			return nil, fmt.Errorf("%s: ConfigMap %s: %w", file, name, err)
		}
		if object.Kind == "ConfigMap" && object.Name == name {
			return object.Data, nil
		}
	}
}
