// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/queue"
)

// Provisioner is the provisioner's name in StorageClasses.
const Provisioner = "local.pergola.dev/volumes"

// Annotations that the controller manager and the scheduler share with provisioners.
const (
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	provisionerAnnotation   = "volume.kubernetes.io/storage-provisioner"
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
)

// Options configure a Controller.
type Options struct {
	Kube kubernetes.Interface
	// Folder has a folder for every volume. It is created on demand.
	Folder string
	// Clock is the real clock if nil.
	Clock clock.WithTicker
	// Log is the default logger if nil.
	Log *slog.Logger
}

// Controller creates and removes volumes.
type Controller struct {
	Options
	factory        informers.SharedInformerFactory
	claims         cache.SharedIndexInformer
	volumes        cache.SharedIndexInformer
	classes        cache.SharedIndexInformer
	provisionQueue *queue.Queue
	reclaimQueue   *queue.Queue
}

// New returns a Controller; Run starts it.
func New(options Options) *Controller {
	c := &Controller{Options: options}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = c.Log.With("controller", "volumes")
	c.provisionQueue, c.reclaimQueue = queue.New(c.Clock, c.Log, c.provision), queue.New(c.Clock, c.Log, c.reclaim)
	c.factory = informers.NewSharedInformerFactory(c.Kube, 0)
	c.claims = c.factory.Core().V1().PersistentVolumeClaims().Informer()
	c.volumes = c.factory.Core().V1().PersistentVolumes().Informer()
	c.classes = c.factory.Storage().V1().StorageClasses().Informer()
	return c
}

// Run reconciles until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	// Pods need an absolute path, because kubelets have other working folders.
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return fmt.Errorf("finding the folder of volumes: %w", err)
	}
	c.Folder = folder
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.claims: c.provisionQueue.Handler(),
		c.classes: queue.ObjectHandler(func(any) {
			for _, claim := range c.claims.GetStore().List() {
				c.provisionQueue.AddObject(claim)
			}
		}),
		c.volumes: cache.ResourceEventHandlerFuncs{
			AddFunc:    c.reclaimQueue.AddObject,
			UpdateFunc: func(_, now any) { c.reclaimQueue.AddObject(now) },
			DeleteFunc: c.removeDeletedFolder,
		},
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching volumes: %w", err)
		}
	}
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), c.claims.HasSynced, c.volumes.HasSynced, c.classes.HasSynced) {
		return nil
	}
	var group sync.WaitGroup
	group.Go(func() { c.reclaimQueue.Run(ctx) })
	c.provisionQueue.Run(ctx)
	group.Wait()
	return nil
}

// provision creates the volume of a claim that needs one.
func (c *Controller) provision(ctx context.Context, key string) (time.Duration, error) {
	object, _, _ := c.claims.GetStore().GetByKey(key)
	claim, _ := object.(*corev1.PersistentVolumeClaim)
	if claim == nil || !isClaimPending(claim) {
		return 0, nil
	}
	object, _, _ = c.classes.GetStore().GetByKey(*claim.Spec.StorageClassName)
	class, _ := object.(*storagev1.StorageClass)
	if class == nil || class.Provisioner != Provisioner {
		return 0, nil
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[selectedNodeAnnotation] == "" {
		return 0, nil
	}
	volume := c.volumeFor(claim, class)
	// The kubelet would create it, too, but readable for everyone.
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o700); err != nil {
		return 0, fmt.Errorf("creating the folder of a volume: %w", err)
	}
	if _, err := c.Kube.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("creating volume %s: %w", volume.Name, err)
	}
	return 0, nil
}

// isClaimPending reports whether a claim waits for this provisioner: the controller manager has
// found no existing volume and has named the provisioner.
func isClaimPending(claim *corev1.PersistentVolumeClaim) bool {
	s := claim.Spec
	return claim.DeletionTimestamp == nil && s.VolumeName == "" && s.Selector == nil && s.StorageClassName != nil &&
		(s.VolumeMode == nil || *s.VolumeMode == corev1.PersistentVolumeFilesystem) && claim.Annotations[provisionerAnnotation] == Provisioner
}

func (c *Controller) volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	// A claim has only one volume ever, so the name prevents duplicates.
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedByAnnotation: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: claim.Spec.AccessModes, PersistentVolumeReclaimPolicy: policy,
			Capacity:   corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
			VolumeMode: new(corev1.PersistentVolumeFilesystem), MountOptions: class.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: filepath.Join(c.Folder, name), Type: new(corev1.HostPathDirectoryOrCreate),
			}},
		},
	}
}

// reclaim removes a volume whose claim no longer exists, and its content.
func (c *Controller) reclaim(ctx context.Context, key string) (time.Duration, error) {
	object, _, _ := c.volumes.GetStore().GetByKey(key)
	volume, _ := object.(*corev1.PersistentVolume)
	if volume == nil || !c.isDisposable(volume) || volume.Status.Phase != corev1.VolumeReleased {
		return 0, nil
	}
	if err := c.removeFolder(volume); err != nil {
		return 0, err
	}
	if volume.DeletionTimestamp != nil {
		return 0, nil
	}
	err := c.Kube.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	return 0, nil
}

// removeDeletedFolder removes the folder of a deleted volume.
func (c *Controller) removeDeletedFolder(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok || !c.isDisposable(volume) {
		return
	}
	if err := c.removeFolder(volume); err != nil {
		c.Log.Warn("The folder of a volume stays", "volume", volume.Name, "error", err)
	}
}

// isDisposable reports whether a volume belongs to this controller and its claim's end deletes it.
// Its folder must be in Folder.
func (c *Controller) isDisposable(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedByAnnotation] == Provisioner && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Spec.HostPath != nil && volume.Spec.HostPath.Path == filepath.Join(c.Folder, volume.Name)
}

// removeFolder also removes folders that a Pod has made unwritable.
func (c *Controller) removeFolder(volume *corev1.PersistentVolume) error {
	path := volume.Spec.HostPath.Path
	err := os.RemoveAll(path)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(path, func(at string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = os.Chmod(at, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(path)
	}
	if err != nil {
		return fmt.Errorf("removing the folder of a volume: %w", err)
	}
	return nil
}
