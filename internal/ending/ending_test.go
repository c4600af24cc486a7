package ending

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContext(t *testing.T) {
	parent, end := context.WithCancel(t.Context())
	of, release := Context(parent)
	defer release()
	require.NoError(t, of.Err())
	end()
	<-of.Done()

	ctx, release := Context(t.Context())
	defer release()
	require.NoError(t, ctx.Err())
	After(0)
	<-ctx.Done()

	late, release := Context(t.Context())
	defer release()
	<-late.Done()
}
