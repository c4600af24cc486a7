package html

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// hostile is a possible text of a log: it must not end the element around the data, nor become an element.
const hostile = `</script><!--<script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "\u2028\x00"

func pageOf(t *testing.T, p *page) string {
	t.Helper()
	data, err := json.Marshal(p)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, write(&out, data))
	return out.String()
}

// The policy names the hash of each script and style of the file, and the file has no more.
func TestPolicy(t *testing.T) {
	text := pageOf(t, &page{Title: hostile})
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	require.NotNil(t, policy)
	assert.True(t, strings.HasPrefix(policy[1], "default-src 'none'; "))
	for _, element := range []string{"script", "style"} {
		inside := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, inside, element)
		for _, one := range inside {
			assert.Contains(t, policy[1], hash(one[1]), element)
		}
	}
	assert.Equal(t, 3, strings.Count(text, "<script"), "the data and two scripts")
	assert.Equal(t, 3, strings.Count(text, "</script>"))
	assert.NotRegexp(t, `(?i)<img|<link[^>]*http|src=["']?http`, strings.ReplaceAll(text, file("vendor/uPlot.iife.min.js"), ""))
}

// A text of a log comes out of the page's data unchanged.
func TestHostileTexts(t *testing.T) {
	text := pageOf(t, &page{Jobs: []job{{Name: hostile, Sections: []section{{Charts: []any{&waterfall{Names: []string{hostile}}}}}}}})
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(text)
	require.NotNil(t, data)
	var p struct {
		Jobs []struct {
			Name     string
			Sections []struct{ Charts []struct{ Names []string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data[1]), &p))
	assert.Equal(t, hostile, p.Jobs[0].Name)
	assert.Equal(t, hostile, p.Jobs[0].Sections[0].Charts[0].Names[0])
}

func TestNumbers(t *testing.T) {
	text, err := json.Marshal(numbers{1, 0.1, -2.5e-9, math.NaN(), math.Inf(1), 1e18, 123456789})
	require.NoError(t, err)
	assert.Equal(t, "[1,0.1,-2.5e-09,null,null,1e+18,123456789]", string(text))
}

// Series of different widths share an axis; the mean of a point is the mean of all its values.
func TestPoints(t *testing.T) {
	var fine, coarse digest.Series
	for i := range int64(10_000) { // buckets of 4
		coarse.Add(i, float64(i))
	}
	for i := range int64(8) {
		fine.Add(i, float64(i))
	}
	require.Equal(t, int64(4), coarse.Width)
	xs, values, width := points(100_000, &fine, &coarse)
	assert.Equal(t, int64(4), width)
	assert.Len(t, xs, 2500)
	assert.Equal(t, []float64{1.5, 5.5}, []float64(values[0].of[:2]))
	assert.True(t, math.IsNaN(values[0].of[2]))
	assert.Equal(t, []float64{1.5, 5.5, 9.5}, []float64(values[1].of[:3]))

	xs, values, width = points(100, &coarse)
	assert.Equal(t, int64(128), width)
	assert.Len(t, xs, 79)
	assert.InDelta(t, 63.5, values[0].of[0], 1e-9)
	assert.Equal(t, []float64{0, 128}, []float64(values[0].low[:2]))
	assert.Equal(t, []float64{127, 255}, []float64(values[0].high[:2]), "one value of many is seen")
	assert.Nil(t, values[0].line(1, line{}).High)
}

// As in pandas' rolling(3, min_periods=1).mean().
func TestMovingAverage(t *testing.T) {
	assert.Equal(t, numbers{1, 1.5, 2, 3, 3.5, 4.5}, movingAverage(numbers{1, 2, 3, 4, math.NaN(), 5}, 3))
}

// The shares of a histogram are the shares of the values.
func TestDistribution(t *testing.T) {
	var v digest.Values
	for range 300 {
		v.Add(1.05)
	}
	for range 100 {
		v.Add(105)
	}
	c := composer{}
	s := c.distribution("t", "x", "s", []named{{"a", &v}})
	require.Len(t, s.Series, 1)
	sum, around := 0.0, map[int]float64{}
	for i, share := range s.Series[0].Values {
		sum += share
		around[int(math.Floor(math.Log10(s.Xs[i])+1e-9))] += share
	}
	assert.InDelta(t, 1, sum, 1e-6)
	assert.InDelta(t, 0.75, around[0], 0.005)
	assert.InDelta(t, 0.25, around[2], 0.005)
}

// Of a few values the shares are exact.
func TestDistributionOfFew(t *testing.T) {
	var v digest.Values
	for _, x := range []float64{1, 1, 1, 20, 500} {
		v.Add(x)
	}
	for x, want := range map[float64]float64{0.5: 0, 1: 0, 1.1: 0.6, 20: 0.6, 21: 0.8, 500: 0.8, 501: 1} {
		assert.InDelta(t, want, below(&v, x), 1e-12, x)
	}
}

// Too large a page has fewer points and rows, then fewer jobs with charts.
func TestFit(t *testing.T) {
	made := func(limit int) (c composer) {
		body, err := fit(limit, 8, func(of composer) *page {
			c = of
			size := of.drawn * (10*of.points + 10*of.rows)
			return &page{Title: strings.Repeat("x", size)}
		})
		require.NoError(t, err)
		if c.drawn > 0 {
			assert.LessOrEqual(t, len(body), limit)
		}
		return c
	}
	assert.Equal(t, composer{points: mostPoints, rows: mostSpans, drawn: 8}, made(1_000_000))
	assert.Equal(t, composer{points: mostPoints / 2, rows: mostSpans / 2, drawn: 8}, made(300_000))
	assert.Equal(t, composer{points: fewPoints, rows: fewPoints, drawn: 2}, made(6_000))
	assert.Zero(t, made(10).drawn)
}
