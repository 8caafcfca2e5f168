// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/living/livingtest"
)

// testCluster is a real API server and controller manager, with the controller under test.
type testCluster struct {
	t      *testing.T
	kube   kubernetes.Interface
	folder string
}

func newWorld(t *testing.T) testCluster {
	t.Helper()
	w := testCluster{t: t, folder: filepath.Join(t.TempDir(), "volumes")}
	w.kube = kubernetes.NewForConfigOrDie(livingtest.Start(t, cluster.PartControllerManager))
	c := New(Options{Kube: w.kube, Folder: w.folder, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	return w
}

func (w testCluster) class(name, provisioner string, mode storagev1.VolumeBindingMode, policy corev1.PersistentVolumeReclaimPolicy) {
	w.t.Helper()
	_, err := w.kube.StorageV1().StorageClasses().Create(w.t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode, ReclaimPolicy: &policy,
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w testCluster) claim(name, class string) {
	w.t.Helper()
	_, err := w.kube.CoreV1().PersistentVolumeClaims("default").Create(w.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w testCluster) get(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	claim, err := w.kube.CoreV1().PersistentVolumeClaims("default").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return claim
}

// awaitVolume waits for the volume of a claim.
func (w testCluster) awaitVolume(name string) *corev1.PersistentVolume {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.get(name).Status.Phase == corev1.ClaimBound }, time.Minute, 50*time.Millisecond, name)
	volume, err := w.kube.CoreV1().PersistentVolumes().Get(w.t.Context(), w.get(name).Spec.VolumeName, metav1.GetOptions{})
	require.NoError(w.t, err)
	return volume
}

func (w testCluster) delete(name string) {
	w.t.Helper()
	require.NoError(w.t, w.kube.CoreV1().PersistentVolumeClaims("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// TestVolumes checks claims of several classes with the real controller manager.
func TestVolumes(t *testing.T) {
	w := newWorld(t)
	w.class("deleted", Provisioner, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete)
	w.class("retained", Provisioner, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimRetain)
	w.class("waits", Provisioner, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete)
	w.class("foreign", "example.org/volumes", storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete)
	for _, class := range []string{"deleted", "retained", "waits", "foreign"} {
		w.claim(class, class)
	}
	w.claim("deleted-2", "deleted")

	deleted, retained := w.awaitVolume("deleted"), w.awaitVolume("retained")
	assert.Equal(t, "5Gi", deleted.Spec.Capacity.Storage().String())
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, deleted.Spec.AccessModes)
	path := filepath.Join(w.folder, deleted.Name)
	assert.Equal(t, path, deleted.Spec.HostPath.Path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.MkdirAll(filepath.Join(path, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "data", "file"), []byte("x"), 0o400))
	require.NoError(t, os.Chmod(filepath.Join(path, "data"), 0o500))

	assert.Empty(t, w.get("waits").Spec.VolumeName, "no Pod has come yet")
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"node"}}}`, selectedNodeAnnotation)
	_, err = w.kube.CoreV1().PersistentVolumeClaims("default").Patch(t.Context(), "waits", types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	w.awaitVolume("waits")

	w.delete("deleted")
	w.awaitGone(deleted.Name)
	assert.NoDirExists(t, path)
	w.delete("retained")
	require.Eventually(t, func() bool {
		volume, err := w.kube.CoreV1().PersistentVolumes().Get(t.Context(), retained.Name, metav1.GetOptions{})
		return err == nil && volume.Status.Phase == corev1.VolumeReleased
	}, time.Minute, 50*time.Millisecond)
	assert.DirExists(t, filepath.Join(w.folder, retained.Name))

	second := w.awaitVolume("deleted-2")
	require.NoError(t, w.kube.CoreV1().PersistentVolumes().Delete(t.Context(), second.Name, metav1.DeleteOptions{}))
	w.delete("deleted-2")
	w.awaitGone(second.Name)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(w.folder, second.Name))
		return os.IsNotExist(err)
	}, time.Minute, 20*time.Millisecond, "the folder of a volume that somebody deletes goes, too")
	assert.Empty(t, w.get("foreign").Spec.VolumeName)
}

func (w testCluster) awaitGone(volume string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.kube.CoreV1().PersistentVolumes().Get(w.t.Context(), volume, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 50*time.Millisecond)
}

func TestOnlyItsOwnFoldersAreRemoved(t *testing.T) {
	c := New(Options{Folder: "/volumes"})
	volume := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := c.volumeFor(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, &storagev1.StorageClass{})
		change(v)
		return v
	}
	assert.True(t, c.isDisposable(volume(func(*corev1.PersistentVolume) {})))
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"somebody else's": func(v *corev1.PersistentVolume) { v.Annotations[provisionedByAnnotation] = "example.org/volumes" },
		"to be kept": func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		},
		"elsewhere": func(v *corev1.PersistentVolume) { v.Spec.HostPath.Path = "/etc" },
		"above":     func(v *corev1.PersistentVolume) { v.Name = ".."; v.Spec.HostPath.Path = "/volumes/.." },
		"no folder": func(v *corev1.PersistentVolume) { v.Spec.HostPath = nil },
	} {
		assert.False(t, c.isDisposable(volume(change)), name)
	}
}

func TestPendingClaims(t *testing.T) {
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{provisionerAnnotation: Provisioner}},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("class")}}
		change(c)
		return c
	}
	assert.True(t, isClaimPending(claim(func(*corev1.PersistentVolumeClaim) {})))
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"has one":          func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "volume" },
		"selects":          func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} },
		"a block device":   func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"not asked yet":    func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil },
		"is being deleted": func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) },
	} {
		assert.False(t, isClaimPending(claim(change)), name)
	}
}
