// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"slices"
)

// growMembership takes one step towards the declared members and returns the shape after it. The
// shape does not change if the step must wait.
func growMembership(ctx context.Context, m membership, e *etcd, s shape) (shape, error) {
	peers, err := m.List(ctx)
	if err != nil {
		return s, err
	}
	for i := range s.Voters {
		at := slices.IndexFunc(peers, func(p peer) bool { return p.Name == e.member(i) })
		// A founder that started without TLS among peers is still registered with its old URL.
		if at >= 0 && !slices.Equal(peers[at].URLs, []string{e.peerURL(i)}) {
			if err := m.Update(ctx, peers[at].ID, e.peerURL(i)); err != nil {
				return s, err
			}
		}
	}
	joining := s.Voters
	at := slices.IndexFunc(peers, func(p peer) bool {
		return p.Name == e.member(joining) || slices.Contains(p.URLs, e.peerURL(joining))
	})
	if at < 0 {
		// A learner has no vote: until it runs, it does not affect the quorum.
		if err := m.AddLearner(ctx, e.peerURL(joining)); err != nil {
			return s, err
		}
		s.Pods = joining + 1
		return s, nil
	}
	s.Pods = joining + 1
	if peers[at].Name == "" {
		return s, nil
	}
	if peers[at].Learner {
		if err := m.Promote(ctx, peers[at].ID); err != nil {
			return s, err
		}
	}
	s.Voters++
	return s, nil
}
