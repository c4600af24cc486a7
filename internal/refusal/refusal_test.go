package refusal

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A partial success of one backend means nothing for the others: the rest counts as accepted only if no other error came.
func TestSeveralBackends(t *testing.T) {
	t.Parallel()
	partial := consumererror.NewPermanent(&Partial{Rejected: 3, Message: "three; are bad"})
	away, bad := status.Error(codes.Unavailable, "away"), consumererror.NewPermanent(status.Error(codes.InvalidArgument, "bad"))
	for name, tt := range map[string]struct {
		err             error
		partial, ofData bool
	}{
		"none":                  {nil, false, false},
		"in part":               {partial, true, true},
		"in part, and away":     {errors.Join(partial, away), false, false},
		"away, and in part":     {errors.Join(away, partial), false, false},
		"in part, and bad":      {errors.Join(partial, bad), false, true},
		"in part, and no error": {errors.Join(partial, nil), true, true},
		"away":                  {away, false, false},
		"bad":                   {bad, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, ok := AsPartial(tt.err)
			assert.Equal(t, tt.partial, ok)
			assert.Equal(t, tt.ofData, OfData(tt.err))
			if tt.err == nil {
				return
			}
			// As the OTLP receiver of a gateway answers.
			st, ok := status.FromError(tt.err)
			if !ok {
				st = status.New(codes.Unavailable, tt.err.Error())
			}
			answer := st.Err()
			n, message, err := FromGateway(answer)
			if !tt.partial {
				assert.Equal(t, answer, err)
				return
			}
			require.NoError(t, err)
			assert.EqualValues(t, 3, n)
			assert.Equal(t, "three; are bad", message)
		})
	}
	_, ok := AsPartial(errors.New("other"))
	assert.False(t, ok)
}
