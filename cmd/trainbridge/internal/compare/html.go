package compare

import (
	_ "embed"
	"html/template"
	"io"
	"math"
)

//go:embed page.html
var page string

// pageTemplate is the template of the page, page.html.
var pageTemplate = template.Must(template.New("compare").Parse(page))

// The data of pageTemplate.
type (
	pageData struct {
		Lang, Conclusion       string
		Warnings, Sides, Notes []string
		Sections               []pageSection
	}
	pageSection struct {
		Title, Below string
		Head         []string
		Rows         []pageRow
	}
	pageRow struct {
		Class string // worse, better, or ""
		Cells [8]string
		Bar   *bar
	}
	// bar is the interval of the ratio as a picture of 160 by 12: no change is in the middle, the double and the half are at the sides.
	bar struct {
		Label          string
		From, Wide, At float64
	}
)

// barOf returns a bar for the interval of a figure's ratio B/A, on a logarithmic axis; nil: there is no interval.
func barOf(f *figure, label string) *bar {
	if math.IsNaN(f.ratio.low) || !f.told {
		return nil
	}
	// 1 is in the middle, at 80; ½ and 2, and all beyond, are 76 to its sides. 1e-9 stands for 0, which has no logarithm.
	place := func(ratio float64) float64 {
		return 80 + 76*min(max(math.Log2(max(ratio, 1e-9)), -1), 1)
	}
	from, to := place(f.ratio.low), place(f.ratio.high)
	return &bar{label, from, max(to-from, 1), place(f.ratio.value)}
}

// writeHTML writes the comparison as a page: the account, then a table of figures for each section, those without a difference too. The page makes no network
// request. html/template escapes texts of logs.
func writeHTML(w io.Writer, d *document) error {
	data := pageData{Lang: "en", Conclusion: d.conclusion(), Warnings: d.warnings(), Sides: d.sides(), Notes: d.notes()}
	if d.words { // Chinese
		data.Lang = "zh"
	}
	// The account, in the columns of the figures: without intervals and bars.
	if title := d.accountTitle(); title != "" {
		account := pageSection{Title: title, Below: d.accountBelow()}
		for _, row := range d.accountRows() {
			head := d.accountHead()
			account.Head = []string{head[0], head[1], head[2], head[3], "", head[4], "", "", ""}
			account.Rows = append(account.Rows, pageRow{Cells: [8]string{row[0], row[1], row[2], row[3], "", row[4]}})
		}
		data.Sections = append(data.Sections, account)
	}
	for _, s := range sections {
		section := pageSection{
			Title: d.titleOf(s.name, s.title),
			Head:  []string{"", "A", "B", "B − A", d.of("interval"), d.of("change"), d.of("interval"), "½ … 2", ""},
		}
		if section.Title == "" {
			continue
		}
		if s.name == sectionLoss {
			section.Below = d.lastLosses()
		}
		for _, f := range d.figures {
			if f.section != s.name {
				continue
			}
			row := pageRow{Cells: d.cells(f)}
			row.Bar = barOf(f, row.Cells[6])
			switch {
			case f.worse():
				row.Class = "worse"
			case f.differs() && f.better != 0:
				row.Class = "better"
			}
			section.Rows = append(section.Rows, row)
		}
		data.Sections = append(data.Sections, section)
	}
	return pageTemplate.Execute(w, data)
}
