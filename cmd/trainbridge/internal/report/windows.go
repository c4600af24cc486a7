package report

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// windows says where the time of steps, batches and passes went.
func (p *page) windows(job *digest.Job) {
	for _, w := range job.Windows.Rows() {
		if w.Took.Count() > 0 {
			_, several := tables.Window(w.Of, p.chinese)
			p.head(p.sf("Where the time of %s went", "%s的耗时分解", several))
			p.print(tables.Parts(w, p.chinese))
		}
	}
}
