package gardenlet

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/owner"
)

// TestPokeWhileJobsChange: who asks for a convergence while a newer job takes the place reaches one of them, and the one that stays hears of what came
// after it took the place. (go test -race has more to say of it.)
func TestPokeWhileJobsChange(t *testing.T) {
	g := &Gardenlet{sites: map[string]*site{}}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": map[string]any{"name": "one"}}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the jobs take the place, and converge nothing
	begin := make(chan struct{})
	start := func() {
		g.start(ctx, "seed one", sources{kind: owner.Seed, key: "key", object: object}, &settings{}, begin)
	}
	start()
	at := g.site("seed one")
	heard := at.poked // where the job listens
	var group sync.WaitGroup
	group.Go(func() {
		for range 100 {
			at.poke()
		}
	})
	for range 100 {
		start()
	}
	group.Wait()
	close(begin)
	<-at.done
	require.Len(t, heard, 1, "several at a time are one")
	<-heard
	at.poke()
	assert.Len(t, heard, 1, "it is the same place for each job")
}
