package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestRemovalWithoutConfirmation: a commit that only removes the file of a Shoot is held, and what else it changes is applied.
func TestRemovalWithoutConfirmation(t *testing.T) {
	w := newWorld(t)
	s := w.shoots("removal", nil)
	w.start(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	w.applied(s, "", "1")
	uid := w.shoot().GetUID()

	s.git("rm", "-q", "shoot.yaml")
	commit := s.set("2")
	l := w.await(s.name, func(l *landscapev1alpha1.Landscape) bool {
		h := l.Status.History
		return len(h) > 0 && h[0].EndTime != nil && strings.HasSuffix(h[0].Revision, commit)
	})
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result, l.Status.History[0].Message)
	require.Len(t, l.Status.Held, 1)
	assert.Contains(t, l.Status.Held[0].Object, "Shoot garden-local/local")
	assert.Contains(t, l.Status.Held[0].Reason, "Put the file back")
	assert.Equal(t, "2", w.value(s.name))
	assert.Equal(t, uid, w.shoot().GetUID())
}
