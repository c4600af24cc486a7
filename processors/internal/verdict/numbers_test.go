package verdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAppendScaled(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		of   scale
		want string
	}{
		{300, seconds, "300 s"},
		{1, seconds, "1 s"},
		{86400.04, seconds, "86400 s"},
		{0.9994, seconds, "999.4 ms"},
		{0.00101, seconds, "1.01 ms"},
		{0.0000123456, seconds, "12.35 µs"},
		{5e-9, seconds, "5 ns"},
		{0, seconds, "0 ns"},
		{-0.5, seconds, "-500 ms"},
		{1e300, seconds, "1e+300 s"},
		{1 << 28, bytes, "256 MiB"},
		{1<<40 + 1<<39, bytes, "1536 GiB"},
		{1000, bytes, "1000 B"},
		{1536, bytes, "1.5 KiB"},
		{180.44e9, bytesPerSecond, "180.4 GB/s"},
		{999e6, bytesPerSecond, "999 MB/s"},
		{12.5e3, bytesPerSecond, "12.5 kB/s"},
		{8, bytesPerSecond, "8 B/s"},
	} {
		assert.Equal(t, tt.want, string(tt.of.append(nil, tt.x)))
	}
}

// A number of hundreds of digits does not fill the sentence.
func TestAppendHuge(t *testing.T) {
	for x, want := range map[float64]string{1e308: "1e+308", -1e15: "-1e+15", 999_999_999_999_999: "999999999999999.0", 0.25: "0.2"} {
		assert.Equal(t, want, string(AppendFixed(nil, x, 1)))
	}
	assert.Equal(t, "1e+300", string(AppendDecimal(nil, 1e300, 2)))
}
