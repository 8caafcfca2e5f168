package cri

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// notFound is the error by which a kubelet knows that something is gone already.
func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %s: not found", what, id)
}

func unsupported(what string) error {
	return status.Errorf(codes.Unimplemented, "the local runtime has no %s", what)
}
