// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// notFound is the error for objects that no longer exist, as kubelets expect it.
func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %s: not found", what, id)
}

func unsupportedError(what string) error {
	return status.Errorf(codes.Unimplemented, "the local runtime has no %s", what)
}
