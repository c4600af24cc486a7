package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Tables of components' pages stand between <!-- semconv: metrics DOMAIN COMPONENT --> and <!-- semconv end -->.
var tables = regexp.MustCompile(`(?s)(<!-- semconv: metrics (\w+) (\w+) -->\n).*?(<!-- semconv end -->)`)

// pages writes the tables of the components' pages.
func pages(root string, ds []*domain) error {
	files, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		old, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		text := tables.ReplaceAllStringFunc(string(old), func(s string) string {
			m := tables.FindStringSubmatch(s)
			rows, err := metricTable(ds, m[2], m[3])
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f, err))
			}
			return m[1] + "\n" + rows + "\n" + m[4]
		})
		if text != string(old) {
			errs = append(errs, write(f, text))
		}
	}
	return errors.Join(errs...)
}

// metricTable has a component's metrics of a domain.
func metricTable(ds []*domain, domain, component string) (string, error) {
	b := &strings.Builder{}
	for _, d := range ds {
		if d.File != domain {
			continue
		}
		for _, g := range of(d, "metric") {
			if slices.Contains(g.Annotations.By, component) {
				fmt.Fprintf(b, "| %s | %s, %s | %s | %s | %s |\n", code(g.MetricName), g.Instrument, g.Unit, cell(g.Brief, g.Note), refs(g), prometheus(g))
			}
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("no metrics of %s %s", domain, component)
	}
	return "| metric | type, unit | | labels | name in Prometheus |\n|---|---|---|---|---|\n" + b.String(), nil
}

func attributeTable(ds []*domain, g *group) string {
	b := &strings.Builder{}
	for _, a := range g.Attributes {
		if resolve(ds, a.Ref) != nil {
			continue // has a table of its own
		}
		kind := a.Type.Name
		if a.Ref != "" {
			kind = "semconv"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s%s |\n", key(a), kind, a.Annotations.Unit, cell(a.Brief, a.Note), values(a))
	}
	if b.Len() == 0 {
		return ""
	}
	return "| attribute | type | unit | |\n|---|---|---|---|\n" + b.String()
}

// verdictTable has all verdicts.
func verdictTable(ds []*domain) string {
	b := &strings.Builder{}
	for _, m := range verdicts(ds) {
		row := func(name string, m *member) {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n",
				name, strings.Join(m.Annotations.Severity, ", "), m.Annotations.On, m.Annotations.Unit, cell(m.Brief), cell(m.Note))
		}
		row(code(m.Value), &m)
		for i := range m.Annotations.Causes {
			c := &m.Annotations.Causes[i]
			row(code(m.Value)+", cause "+code(c.Value), c)
		}
	}
	return "| verdict | severity | on | unit | when, by default | what to do |\n|---|---|---|---|---|---|\n" + b.String()
}

func verdicts(ds []*domain) []member { return resolve(ds, "trainbridge.verdict.name").Type.Members }

func kinds(ds []*domain) []member { return resolve(ds, "trainbridge.kind").Type.Members }

func of(d *domain, kind string) []*group {
	var out []*group
	for _, g := range d.Groups {
		if g.Type == kind {
			out = append(out, g)
		}
	}
	return out
}

func code(s string) string { return "`" + s + "`" }

func cell(of ...string) string { return strings.ReplaceAll(sentences(of...), "|", `\|`) }

func key(a *attribute) string {
	if strings.HasPrefix(a.Type.Name, "template[") {
		return code(a.name() + "*")
	}
	return code(a.name())
}

// values lists the values of an enum. Verdicts have a table of their own.
func values(a *attribute) string {
	var out []string
	for _, m := range a.Type.Members {
		if len(m.Annotations.Severity) == 0 {
			out = append(out, code(m.Value)+" "+strings.TrimSuffix(m.Brief, "."))
		}
	}
	for _, v := range slices.Sorted(maps.Values(a.Annotations.Values)) {
		out = append(out, code(v))
	}
	if len(out) == 0 {
		return ""
	}
	return "<br>" + cell(strings.Join(out, "<br>"))
}

// units are the units of metrics, attributes and verdicts.
func units(ds []*domain) []string {
	used := map[string]bool{}
	for _, d := range ds {
		for _, g := range d.Groups {
			used[g.Unit] = true
			for _, a := range g.Attributes {
				used[a.Annotations.Unit] = true
				for _, m := range a.Type.Members {
					used[m.Annotations.Unit] = true
				}
			}
		}
	}
	delete(used, "") // no unit
	return slices.Sorted(maps.Keys(used))
}

func spanName(g *group) string {
	if name := g.Annotations.Name; strings.HasSuffix(name, " ") {
		return code(name + "*")
	}
	return code(g.Annotations.Name)
}

func refs(g *group) string {
	var out []string
	for _, a := range g.Attributes {
		out = append(out, code(a.Ref))
	}
	return strings.Join(out, " ")
}

var prometheusUnits = map[string]string{
	"s": "_seconds", "By": "_bytes", "By/s": "_bytes_per_second", "ns": "_nanoseconds", "J": "_joules", "W": "_watts", "Hz": "_hertz", "Cel": "_celsius",
}

// prometheus is the prometheus exporter's name of a metric.
func prometheus(g *group) string {
	name := strings.ReplaceAll(g.MetricName, ".", "_")
	switch {
	case strings.HasSuffix(g.Unit, "}/s"):
		name += "_per_second"
	case g.Unit == "1" && g.Instrument == "gauge":
		name += "_ratio"
	default:
		name += prometheusUnits[g.Unit]
	}
	if g.Instrument == "counter" {
		name += "_total"
	}
	return code(name)
}
