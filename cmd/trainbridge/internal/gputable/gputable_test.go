package gputable

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRead(t *testing.T) {
	at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
	for in, want := range map[string][]*GPU{
		`timestamp, index, name, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_thermal_slowdown
2026/09/14 08:30:00.000, 0, NVIDIA H100 80GB HBM3, 640.12 W, 1755 MHz, Not Active, Not Active
2026/09/14 08:30:00.000, 1, NVIDIA H100 80GB HBM3, 400.12 W, 1200 MHz, Active, Not Active
2026/09/14 08:30:0`: {
			{"0", "NVIDIA H100 80GB HBM3", []Sample{{at.UnixNano(), 1755, false, false}}},
			{"1", "NVIDIA H100 80GB HBM3", []Sample{{at.UnixNano(), 1200, true, false}}},
		},
		`#Date       Time        gpu    pwr  gtemp  mtemp     sm   mclk   pclk  pviol  tviol 
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %    MHz    MHz      %   bool 
 20260914   08:30:00      6    410     88     97     99   2619   1290      0      1
`: {{"6", "", []Sample{{at.UnixNano(), 1290, false, true}}}},
		"timestamp, index, clocks.gr\n2026/09/14 08:30:00.000, 0, [N/A]\n": nil,
		"step,loss\n1,2\n": nil,
	} {
		assert.Equal(t, want, Read(strings.NewReader(in), time.UTC), in)
	}
	assert.True(t, IsHead("timestamp, index, clocks.sm [MHz]"))
	assert.False(t, IsHead("timestamp, step, loss"))
	assert.False(t, IsHead("# gpu   pwr  gtemp   mclk   pclk"))
}
