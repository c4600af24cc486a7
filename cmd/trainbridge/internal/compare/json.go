package compare

import (
	"encoding/json"
	"io"
	"math"
)

// The JSON document, docs/reference/compare.md. Unknown numbers are left out.
type (
	jsonDocument struct {
		Conclusion string        `json:"conclusion"`
		Comparable bool          `json:"comparable"`
		Warnings   []string      `json:"warnings"`
		A          jsonRun       `json:"a"`
		B          jsonRun       `json:"b"`
		Facts      []jsonFact    `json:"facts"`
		Confidence float64       `json:"confidence"`          // of all intervals together
		Each       float64       `json:"confidence_interval"` // of each
		Resamples  int           `json:"resamples"`
		Account    *jsonAccounts `json:"account,omitempty"`
		Figures    []jsonFigure  `json:"figures"`
		Loss       *jsonLastLoss `json:"last_loss,omitempty"`
		Notes      []string      `json:"notes"`
	}
	jsonRun struct {
		Path  string `json:"path"`
		Run   string `json:"run"`
		Units string `json:"units"`
	}
	jsonFact struct {
		Name    string   `json:"name"`
		A       []string `json:"a"`
		B       []string `json:"b"`
		Differs bool     `json:"differs"`
		Needed  bool     `json:"needed"` // runs with different values are not comparable
	}
	jsonFigure struct {
		Section    string        `json:"section"`
		Of         string        `json:"of,omitempty"`
		Name       string        `json:"name"`
		Unit       string        `json:"unit"`
		A          jsonMean      `json:"a"`
		B          jsonMean      `json:"b"`
		Difference *jsonInterval `json:"difference,omitempty"` // B − A
		Ratio      *jsonInterval `json:"ratio,omitempty"`      // B/A
		Finding    string        `json:"finding"`              // higher, lower, none, too_few, only_a, only_b
		Worse      bool          `json:"worse"`
	}
	jsonMean struct {
		Mean   *float64 `json:"mean,omitempty"`
		Median *float64 `json:"median,omitempty"`
		Values int      `json:"values"`
		Units  int      `json:"units"`
		Block  int      `json:"block,omitempty"` // units that are drawn together
	}
	jsonInterval struct {
		Value float64  `json:"value"`
		Low   *float64 `json:"low,omitempty"`
		High  *float64 `json:"high,omitempty"`
	}
	jsonAccounts struct {
		A       *jsonAccount `json:"a,omitempty"`
		B       *jsonAccount `json:"b,omitempty"`
		Differs bool         `json:"differs"` // by 1 % of the wall clock or more
	}
	jsonAccount struct {
		Wall    float64            `json:"wall_s"`
		States  map[string]float64 `json:"states"` // s
		Goodput float64            `json:"goodput"`
	}
	jsonLastLoss struct {
		A *jsonLoss `json:"a,omitempty"`
		B *jsonLoss `json:"b,omitempty"`
	}
	jsonLoss struct {
		Step int64   `json:"step"`
		Loss float64 `json:"loss"`
	}
)

// jsonFindings are the names of the findings in the document.
var jsonFindings = map[string]string{
	findingNone: "none", findingFew: "too_few", findingOnlyA: "only_a", findingOnlyB: "only_b", findingHigher: "higher", findingLower: "lower",
}

// finiteOrNil returns a pointer to the number; nil for NaN and infinities, which JSON lacks.
func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// json returns the interval for the document; nil: its value is not finite.
func (i interval) json() *jsonInterval {
	if finiteOrNil(i.value) == nil {
		return nil
	}
	return &jsonInterval{i.value, finiteOrNil(i.low), finiteOrNil(i.high)}
}

// json returns the last loss for the document; nil: the run has none.
func (f lastLoss) json() *jsonLoss {
	if f == (lastLoss{}) {
		return nil
	}
	return &jsonLoss{f.step, f.loss}
}

// json returns the JSON document. Lists are never null.
func (d *document) json() *jsonDocument {
	out := &jsonDocument{
		Conclusion: d.conclusion(), Comparable: d.Comparable(), Warnings: append([]string{}, d.warnings()...),
		A: jsonRun{d.nameA, d.a.ID, d.unitsA}, B: jsonRun{d.nameB, d.b.ID, d.unitsB}, Facts: []jsonFact{},
		Confidence: Confidence, Each: d.confidence, Resamples: resamples, Figures: []jsonFigure{}, Notes: d.notes(),
	}
	if d.accountTitle() != "" {
		out.Account = &jsonAccounts{jsonAccountOf(d.accounts.a), jsonAccountOf(d.accounts.b), d.accounts.both() && !d.accounts.alike()}
	}
	for _, f := range d.facts {
		out.Facts = append(out.Facts, jsonFact{f.name, append([]string{}, f.a...), append([]string{}, f.b...), f.differs, f.needed})
	}
	for _, f := range d.figures {
		out.Figures = append(out.Figures, jsonFigure{
			f.section, f.of, f.name, f.unit,
			jsonMean{finiteOrNil(f.estimate.a), finiteOrNil(f.medianA), f.countA, len(f.a), f.blockA},
			jsonMean{finiteOrNil(f.estimate.b), finiteOrNil(f.medianB), f.countB, len(f.b), f.blockB},
			f.difference.json(), f.ratio.json(), jsonFindings[f.finding()], f.worse(),
		})
	}
	if a, b := d.lossA.json(), d.lossB.json(); a != nil || b != nil {
		out.Loss = &jsonLastLoss{a, b}
	}
	return out
}

// writeJSON writes the comparison as a JSON document.
func writeJSON(w io.Writer, d *document) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d.json())
}
