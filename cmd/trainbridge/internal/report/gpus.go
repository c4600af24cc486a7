package report

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// gpus writes a table of the GPUs whose utilization, memory or power the logs state, maxCards rows at most; no such GPU: no table.
func (p *page) gpus(job *digest.Job) {
	cards := job.GPUs()
	if len(cards) == 0 {
		return
	}
	p.head(p.in("GPUs", "GPU"))
	p.print(tables.GPUs(cards[:min(len(cards), maxCards)], p.chinese))
	if n := len(cards) - maxCards; n > 0 {
		p.line(p.sf("  and %s more", "  另有 %s 张", human.Thousands(n)))
	}
}

const maxCards = 64
