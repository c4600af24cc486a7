package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// domain is a file, in weaver's schema for semantic conventions. Its first comment is "Title: brief".
type domain struct {
	File, Title, Brief string

	Groups  []*group `yaml:"groups"`
	Views   []*group // the views among Groups: see view
	Imports struct {
		Metrics []string `yaml:"metrics"`
	} `yaml:"imports"`
}

type group struct {
	ID          string       `yaml:"id"`
	Type        string       `yaml:"type"` // attribute_group, span, event or metric
	DisplayName string       `yaml:"display_name"`
	Brief       string       `yaml:"brief"`
	Note        string       `yaml:"note"`
	Stability   string       `yaml:"stability"`
	SpanKind    string       `yaml:"span_kind"`
	Name        string       `yaml:"name"` // of an event
	MetricName  string       `yaml:"metric_name"`
	Instrument  string       `yaml:"instrument"`
	Unit        string       `yaml:"unit"`
	Attributes  []*attribute `yaml:"attributes"`
	Annotations struct {
		Go      string            `yaml:"go"`
		Name    string            `yaml:"name"`    // of a span
		By      []string          `yaml:"by"`      // the components that make the metric
		Labels  string            `yaml:"labels"`  // text of a README about the metric's attributes
		Metrics map[string]string `yaml:"metrics"` // Go names of imported metrics
		Units   map[string]string `yaml:"units"`
		Room    string            `yaml:"room"` // Go name of how many of the attributes a span mostly gets

		// Of a view.
		View   string   `yaml:"view"`   // Go name of the struct
		Prefix string   `yaml:"prefix"` // of the attributes' Go names, dropped from field names
		Fields []string `yaml:"fields"` // further fields, as Go declarations; a single word: embedded
		// How attributes are read. "": all is generated. finish: all but a method finish, called at the end. own: only the method take, for a Read by hand. none:
		// within other views only. note: within other views too, by a call for each foreign attribute; few spans have any, and switches with its attributes would
		// make small views a fifth slower.
		Read string `yaml:"read"`
	} `yaml:"annotations"`
}

type attribute struct {
	ID          string   `yaml:"id"`
	Ref         string   `yaml:"ref"` // in place of ID: of this registry, or of the semantic conventions of OpenTelemetry
	Type        attrType `yaml:"type"`
	Brief       string   `yaml:"brief"`
	Note        string   `yaml:"note"`
	Stability   string   `yaml:"stability"`
	Examples    any      `yaml:"examples"`
	Requirement struct {
		If string `yaml:"conditionally_required"`
	} `yaml:"requirement_level"`
	Annotations struct {
		Go     string            `yaml:"go"`
		GoType string            `yaml:"go_type"`
		Unit   string            `yaml:"unit"`
		Values map[string]string `yaml:"values"` // Go names of values of the referenced attribute
		// Members of the referenced attribute in this domain only: the kinds of its spans, the verdicts about them.
		Members []member `yaml:"members"`

		// Of a reference in a view.
		Field    string `yaml:"field"`    // where the rule of fieldName has no good name; "-": none
		As       string `yaml:"as"`       // Go type, where the rule of goType has another
		Sets     string `yaml:"sets"`     // a flag that the attribute sets, whatever its value
		Inherits bool   `yaml:"inherits"` // the resource's value holds if the span has none
	} `yaml:"annotations"`
}

// attrType is a name such as "int[]", or the members of an enum.
type attrType struct {
	Name    string
	Members []member
}

func (t *attrType) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		t.Name = n.Value
		return nil
	}
	var enum struct {
		Members []member `yaml:"members"`
	}
	if err := n.Decode(&enum); err != nil {
		return err
	}
	t.Name, t.Members = "string", enum.Members
	return nil
}

type member struct {
	ID          string `yaml:"id"`
	Value       string `yaml:"value"`
	Brief       string `yaml:"brief"`
	Note        string `yaml:"note"`
	Stability   string `yaml:"stability"`
	Annotations struct {
		Go       string   `yaml:"go"`
		Severity []string `yaml:"severity"` // of several, the first is the usual one
		Unit     string   `yaml:"unit"`
		On       string   `yaml:"on"`
		Causes   []member `yaml:"causes"` // of a verdict: values of trainbridge.verdict.cause. Empty fields of a cause are the verdict's.
	} `yaml:"annotations"`
}

// read reads all files of the registry: the file common to all domains first, also the order of docs/reference/semconv.md. Unknown keys are errors.
func read(dir string) ([]*domain, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	common := filepath.Join(dir, "common.yaml")
	slices.SortStableFunc(files, func(a, b string) int {
		switch common {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	var out []*domain
	for _, f := range files {
		if filepath.Base(f) == "manifest.yaml" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		d := &domain{File: strings.TrimSuffix(filepath.Base(f), ".yaml")}
		in := yaml.NewDecoder(bytes.NewReader(text))
		in.KnownFields(true)
		if err := in.Decode(d); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		var about []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "# ") {
				break
			}
			about = append(about, strings.TrimSpace(line[2:]))
		}
		d.Title, d.Brief, _ = strings.Cut(strings.Join(about, " "), ": ")
		for _, g := range d.Groups {
			if g.Annotations.View != "" {
				d.Views = append(d.Views, g)
			}
		}
		d.Groups = slices.DeleteFunc(d.Groups, func(g *group) bool { return g.Annotations.View != "" })
		out = append(out, d)
	}
	join(out)
	return out, check(out)
}

// join adds the domains' members to the attributes.
func join(ds []*domain) {
	for _, d := range ds {
		for _, g := range d.Groups {
			for _, ref := range g.Attributes {
				a, causes := resolve(ds, ref.Ref), resolve(ds, "trainbridge.verdict.cause")
				for _, m := range ref.Annotations.Members {
					for i := range m.Annotations.Causes {
						c := &m.Annotations.Causes[i].Annotations
						if len(c.Severity) == 0 {
							c.Severity = m.Annotations.Severity[:1]
						}
						c.Unit, c.On = cmp.Or(c.Unit, m.Annotations.Unit), m.Annotations.On
					}
					a.Type.Members = append(a.Type.Members, m)
					causes.Type.Members = append(causes.Type.Members, m.Annotations.Causes...)
				}
			}
		}
	}
}

var goName = regexp.MustCompile(`^[A-Z]\w*$`)

// check finds mistakes beyond weaver's schema: duplicate names, references to nothing, entries without text.
func check(ds []*domain) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	ids, attrs, metrics, upstream := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range ds {
		for _, g := range d.Groups {
			if ids[g.ID] {
				bad("%s stands twice", g.ID)
			}
			ids[g.ID] = true
			if g.Brief == "" {
				bad("%s has no brief", g.ID)
			}
			if g.Type == "metric" {
				if metrics[g.MetricName] {
					bad("metric %s stands twice", g.MetricName)
				}
				metrics[g.MetricName] = true
			}
			for _, a := range g.Attributes {
				switch {
				case a.ID == "":
					upstream[a.Ref] = upstream[a.Ref] || g.Type == "attribute_group"
				case attrs[a.ID]:
					bad("attribute %s stands twice", a.ID)
				case a.Brief == "" || a.Type.Name == "" || a.Stability == "":
					bad("attribute %s has no brief, type or stability", a.ID)
				}
				attrs[a.ID] = true
			}
		}
	}
	for _, d := range ds {
		for _, g := range d.Groups {
			for _, a := range g.Attributes {
				if a.Ref != "" && !attrs[a.Ref] && !upstream[a.Ref] {
					bad("%s refers to %s, which no attribute_group has", g.ID, a.Ref)
				}
			}
		}
	}
	values := map[string]string{}
	for _, c := range constants(ds) {
		if !goName.MatchString(c.Name) {
			bad("%q is no name of Go", c.Name)
		}
		if v, ok := values[c.Name]; ok && v != c.Value {
			bad("%s is %q and %q", c.Name, v, c.Value)
		}
		values[c.Name] = c.Value
	}
	return errors.Join(errs...)
}

// rooms counts the attributes that train_perf mostly adds to a span, group by group.
func rooms(ds []*domain) []room {
	var out []room
	for _, d := range ds {
		for _, g := range d.Groups {
			if g.Annotations.Room == "" {
				continue
			}
			r := room{Name: g.Annotations.Room, Group: d.Title + " · " + g.DisplayName}
			for _, a := range g.Attributes {
				if a.Requirement.If == "" {
					r.N++
				}
			}
			out = append(out, r)
		}
	}
	return out
}

type room struct {
	Name, Group string
	N           int
}

// resolve finds a referenced attribute of the registry; nil: an attribute of the semantic conventions.
func resolve(ds []*domain, ref string) *attribute {
	if ref == "" {
		return nil
	}
	for _, d := range ds {
		for _, g := range d.Groups {
			for _, a := range g.Attributes {
				if a.ID == ref {
					return a
				}
			}
		}
	}
	return nil
}

// constant is a Go name.
type constant struct{ Name, Type, Value, Doc string }

// section is a block of constants.
type section struct {
	Doc       string
	Constants []constant
}

func constants(ds []*domain) []constant {
	var out []constant
	for _, s := range sections(ds) {
		out = append(out, s.Constants...)
	}
	return out
}

// sections orders the Go names like the registry: a block per group of attributes, a block of the values of each enum, and for each domain a block of spans and
// events, and a block of metrics.
func sections(ds []*domain) []section {
	var out []section
	done := map[string]bool{}
	add := func(doc string, cs []constant) {
		cs = slices.DeleteFunc(cs, func(c constant) bool { return c.Name == "" || done[c.Name] && doc != "" })
		for _, c := range cs {
			done[c.Name] = true
		}
		if len(cs) > 0 {
			out = append(out, section{doc, cs})
		}
	}
	for _, d := range ds {
		var spans, metrics []constant
		for _, g := range d.Groups {
			a := g.Annotations
			switch g.Type {
			case "span":
				spans = append(spans, constant{a.Go, "", a.Name, sentences(g.Brief, g.Note)})
			case "event":
				spans = append(spans, constant{a.Go, "", g.Name, sentences(g.Brief, g.Note)})
			case "metric":
				metrics = append(metrics, constant{a.Go, "", g.MetricName, sentences(g.Instrument+", "+g.Unit+".", g.Brief, g.Note)})
			default:
				attributeNames(d, g, add)
			}
			for _, name := range slices.Sorted(maps.Keys(a.Metrics)) {
				metrics = append(metrics, constant{name, "", a.Metrics[name], "Of semconv 1.37."})
			}
			var units []constant
			for _, name := range slices.Sorted(maps.Keys(a.Units)) {
				units = append(units, constant{name, "", a.Units[name], ""})
			}
			add(sentences(g.Brief, g.Note), units)
		}
		add(d.Title+": spans and events.", spans)
		add(d.Title+": metrics.", metrics)
	}
	return out
}

// attributeNames adds the names of the attributes of a group, and of their values.
func attributeNames(d *domain, g *group, add func(string, []constant)) {
	var names []constant
	for _, a := range g.Attributes {
		names = append(names, constant{a.Annotations.Go, "", a.name(), sentences(attributeDoc(a), a.Brief, a.Note)})
	}
	add(d.Title+" · "+g.DisplayName+". "+g.Brief, names)
	for _, a := range g.Attributes {
		var values []constant
		for _, m := range a.Type.Members {
			doc := m.Brief
			if s := m.Annotations.Severity; len(s) > 0 {
				doc = strings.Join(s, " or ") + ": " + m.Brief
			}
			values = append(values, constant{m.Annotations.Go, a.Annotations.GoType, m.Value, doc})
		}
		for _, name := range slices.Sorted(maps.Keys(a.Annotations.Values)) {
			values = append(values, constant{name, "", a.Annotations.Values[name], ""})
		}
		add("Values of "+a.name()+".", values)
	}
}

// attributeDoc is an attribute's type and unit.
func attributeDoc(a *attribute) string {
	switch unit := a.Annotations.Unit; {
	case a.Ref != "" && a.Annotations.Go != "":
		return "Of semconv 1.37."
	case unit != "":
		return a.Type.Name + ", " + unit + "."
	case a.Type.Name != "" && a.Type.Name != "string":
		return a.Type.Name + "."
	}
	return ""
}

// name is the attribute's key; of a template, the text before the dynamic part.
func (a *attribute) name() string {
	switch {
	case a.Ref != "":
		return a.Ref
	case strings.HasPrefix(a.Type.Name, "template[") && !strings.HasSuffix(a.ID, "."):
		return a.ID + "."
	}
	return a.ID
}

func sentences(of ...string) string {
	return strings.Join(slices.DeleteFunc(of, func(s string) bool { return s == "" }), " ")
}
