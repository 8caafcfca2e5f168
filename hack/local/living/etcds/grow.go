package etcds

import (
	"context"
	"slices"
)

// grow takes one step from the members that a running etcd has to those that are declared, and
// returns the shape after it. When nothing can be done yet, the shape is the same.
func grow(ctx context.Context, m membership, e *etcd, s shape) (shape, error) {
	peers, err := m.List(ctx)
	if err != nil {
		return s, err
	}
	for i := range s.Voters {
		at := slices.IndexFunc(peers, func(p peer) bool { return p.Name == e.member(i) })
		// One that was founded without TLS among peers is still known by its former address.
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
		// As a learner it has no vote: until it runs, the quorum is that of the others.
		if err := m.AddLearner(ctx, e.peerURL(joining)); err != nil {
			return s, err
		}
		s.Run = joining + 1
		return s, nil
	}
	s.Run = joining + 1
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
