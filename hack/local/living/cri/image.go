// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Images are a Runtime's images for the kubelet. Nothing is pulled: an image always exists or
// never.
type Images struct{ *Runtime }

// findImage returns the image of a reference, or nil if there is none.
func (r *Runtime) findImage(reference string) *runtimeapi.Image {
	found, _, err := r.options.Images.Find(reference)
	if err != nil {
		return nil
	}
	// The user id has no effect. 65532 is distroless's nonroot, as in images of control planes, and
	// satisfies runAsNonRoot.
	return &runtimeapi.Image{Id: reference, RepoTags: []string{reference}, Size: 1, Uid: &runtimeapi.Int64Value{Value: 65532}, Spec: &runtimeapi.ImageSpec{Image: reference, UserSpecifiedImage: reference,
		Annotations: map[string]string{"executable": r.options.Executables[found.Executable]}}}
}

// ListImages returns the images of existing containers.
func (i Images) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	only := filter.GetImage().GetImage()
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var out []*runtimeapi.Image
	known := map[string]bool{}
	for _, c := range i.containers {
		if reference := c.config.GetImage().GetImage(); !known[reference] && (only == "" || only == reference) {
			known[reference] = true
			out = append(out, i.findImage(reference))
		}
	}
	return out, nil
}

// ImageStatus returns an image, or nil if it does not exist.
func (i Images) ImageStatus(_ context.Context, image *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{Image: i.findImage(image.GetImage())}, nil
}

// PullImage fails if the image does not exist; otherwise it does nothing.
func (i Images) PullImage(_ context.Context, image *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if _, _, err := i.options.Images.Find(image.GetImage()); err != nil {
		return "", status.Error(codes.NotFound, err.Error())
	}
	return image.GetImage(), nil
}

// RemoveImage does nothing.
func (i Images) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }

// ImageFsInfo returns the runtime's folder with no usage: executables cannot be freed.
func (i Images) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	usage := []*runtimeapi.FilesystemUsage{{
		Timestamp: i.options.Clock.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: i.options.Folder},
		UsedBytes: &runtimeapi.UInt64Value{}, InodesUsed: &runtimeapi.UInt64Value{},
	}}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

// Close does not change the runtime.
func (i Images) Close(context.Context) error { return nil }
