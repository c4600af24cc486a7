//go:build e2e

package e2e

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/human"
)

// The report's page writes numbers like all other outputs.
func TestUnitsOfPage(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../cmd/trainbridge/internal/report/html/assets/units.js")
	require.NoError(t, err)
	values := []float64{
		0, 0.5, 1, 1.0625, 2.5, -3.5, 1234.5, 1235.5, -1234.5, 999.95, 999.96, 99995, 0.89825, 1023.96, 1024, 1 << 30, 1e-4, 1e9, 9.9995e8, 1e15,
		599.94, 599.95, 3599.5, 3600, 359_940, 360_000,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		values = append(values, math.Exp(60*random.Float64()-22))
	}
	type one struct {
		Value float64
		Unit  string
	}
	var all []one
	var want []string
	for unit, write := range map[string]func(float64) string{
		"s": human.Seconds, "By": human.Bytes, "By/s": human.Rate, "binary By/s": human.BinaryRate, "Hz": human.Hertz, "{flop}/s": human.Flops, "1": human.Percent,
		"W": human.Watts, "Cel": human.Celsius, "clock": human.Clock, "": human.Digits,
	} {
		for _, v := range values {
			if unit != "clock" || v >= 0 {
				all, want = append(all, one{v, unit}), append(want, write(v))
			}
		}
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	b := openBrowser(t)
	var got []string
	b.eval("(() => {"+string(script)+"return "+string(data)+".map((of) => write(of.Value, of.Unit)); })()", &got)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i], got[i], "%v %s", all[i].Value, all[i].Unit)
	}
}
