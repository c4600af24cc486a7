package trainmetricsconnector

import (
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

// takeAccount takes the series of accounts out of points. It returns their values by run and label.
func takeAccount(of map[string]point) map[string]float64 {
	out := map[string]float64{}
	for key, p := range of {
		parts := splitKey(key)
		if parts[2] == spans.MetricRunTime || parts[2] == spans.MetricGoodput {
			name := strings.TrimSuffix(strings.TrimPrefix(strings.Trim(parts[3], "[]"), spans.AttrRunState+"="), " ")
			out[parts[1]+" "+name] = p.value
			delete(of, key)
		}
	}
	return out
}
