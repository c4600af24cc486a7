package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// view is a struct of internal/traces/view: a group of references whose id begins with "view.". Its brief is the struct's comment.
type view struct {
	Go, Doc  string
	Read     string   // how: see group
	Embedded []string // embedded structs of the package
	Asked    string   // the one of Embedded that reads foreign attributes
	Fields   []field  // read from attributes
	More     []string // declarations of further fields: parts, arrays, computed ones
	Readings []reading
	Inherits []string // assignments from the span's resource
}

type field struct{ Name, Type, Doc string }

// reading is an attribute of a view, or of one of its parts.
type reading struct {
	Attribute, Const string
	Targets, Values  string // both sides of the assignment
	Template         bool   // the attribute's name is a prefix; the rest is the target's key

	path     string // of the part, from the view
	of       field
	sets     string
	inherits bool
}

// Receiver is the name of the struct in its methods.
func (v *view) Receiver() string { return strings.ToLower(v.Go[:1]) }

// Templates are the readings of attributes whose names go on.
func (v *view) Templates() []reading {
	return slices.DeleteFunc(slices.Clone(v.Readings), func(r reading) bool { return !r.Template })
}

// readers turn the value of an attribute into a Go type.
var readers = map[string]string{
	"string": "spans.ValueText(value)", "float64": "spans.ValueNumber(value)", "Int": "ordinalOf(value)", "bool": "flagOf(value)", "List": "listOf(value)",
	"Loss": "lossOf(value)", "spans.TQStage": "spans.TQStageOf(value)", "spans.TimeSource": "spans.TimeSource(spans.ValueText(value))",
}

// views reads the groups that are views, in the order of the registry.
func views(ds []*domain) ([]*view, error) {
	all := map[string]*group{}
	for _, d := range ds {
		for _, g := range d.Views {
			all[g.Annotations.View] = g
		}
	}
	stated, err := readings(ds, all, "Resource")
	if err != nil {
		return nil, err
	}
	var out []*view
	for _, d := range ds {
		for _, g := range d.Views {
			v, err := viewOf(ds, all, g)
			if err != nil {
				return nil, err
			}
			v.Inherits = inherited(v, stated)
			out = append(out, v)
		}
	}
	return out, nil
}

func viewOf(ds []*domain, all map[string]*group, g *group) (*view, error) {
	v := &view{Go: g.Annotations.View, Doc: g.Brief, Read: g.Annotations.Read}
	for _, f := range g.Annotations.Fields {
		if strings.Contains(f, " ") {
			v.More = append(v.More, f)
		} else {
			v.Embedded = append(v.Embedded, f)
		}
		if part := all[f]; part != nil && part.Annotations.Read == "note" {
			v.Asked = f
		}
	}
	var err error
	v.Readings, err = readings(ds, all, v.Go)
	if err != nil {
		return nil, err
	}
	for i := range v.Readings {
		r := &v.Readings[i]
		if r.path == "" {
			v.add(r.of, r.Attribute)
		}
		r.assign(v.Receiver())
	}
	return v, nil
}

// add declares a field, unless part of a part or an array. Several attributes may have the same field.
func (v *view) add(f field, attribute string) {
	if f.Name == "" || strings.ContainsAny(f.Name, ".[(") {
		return
	}
	for i := range v.Fields {
		if old := &v.Fields[i]; old.Name == f.Name {
			old.Doc += " Or " + attribute + "."
			return
		}
	}
	v.Fields = append(v.Fields, f)
}

// readings are the readings of a view and of its parts: a single switch for all is faster than asking part by part.
func readings(ds []*domain, all map[string]*group, name string) ([]reading, error) {
	g := all[name]
	if g == nil {
		return nil, fmt.Errorf("no view %s", name)
	}
	var out []reading
	for _, ref := range g.Attributes {
		a := named(ds, ref.Ref)
		if a == nil {
			return nil, fmt.Errorf("%s: no attribute %s has a Go name", g.ID, ref.Ref)
		}
		of := field{fieldName(g, ref, a), goType(ref, a), sentences(a.name()+":", attributeDoc(a), a.Brief, a.Note)}
		r := reading{
			Attribute: ref.Ref, Const: a.Annotations.Go, Values: readers[of.Type], Template: strings.HasPrefix(a.Type.Name, "template["),
			of: of, sets: ref.Annotations.Sets, inherits: ref.Annotations.Inherits,
		}
		if r.Values == "" {
			return nil, fmt.Errorf("%s: nothing reads %s as a %s", g.ID, ref.Ref, of.Type)
		}
		out = append(out, r)
	}
	for _, f := range g.Annotations.Fields {
		words := strings.Fields(f)
		if part := words[min(1, len(words)-1)]; all[part] != nil && all[part].Annotations.Read == "none" {
			of, err := readings(ds, all, part)
			if err != nil {
				return nil, err
			}
			for _, r := range of {
				r.path = words[0] + "." + r.path
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// assign writes the assignment.
func (r *reading) assign(receiver string) {
	at := receiver + "." + r.path
	switch {
	case r.of.Name == "":
		r.Targets, r.Values = at+r.sets, "true"
	case r.sets == "":
		r.Targets = at + r.of.Name
	default:
		r.Targets, r.Values = at+r.of.Name+", "+at+r.sets, r.Values+", true"
	}
}

// inherited assigns a resource's values to a view of its spans.
func inherited(v *view, stated []reading) []string {
	var out []string
	add := func(to, from string) {
		if line := v.Receiver() + "." + to + " = res." + from; !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	for _, r := range v.Readings {
		for _, from := range stated {
			if !r.inherits || from.Attribute != r.Attribute {
				continue
			}
			if r.of.Name != "" {
				add(r.path+r.of.Name, from.path+from.of.Name)
			}
			if r.sets != "" {
				add(r.path+r.sets, from.path+from.sets)
			}
		}
	}
	return out
}

// named is the attribute of a name, with its Go name; nil: none.
func named(ds []*domain, name string) *attribute {
	for _, d := range ds {
		for _, g := range d.Groups {
			for _, a := range g.Attributes {
				if (a.ID == name || a.Ref == name) && a.Annotations.Go != "" {
					return a
				}
			}
		}
	}
	return nil
}

// fieldName is a view's field for an attribute, with its path: as annotated, else the attribute's Go name without Attr and the view's prefix. "" is none: the
// attribute only sets a flag.
func fieldName(g *group, ref, a *attribute) string {
	switch ref.Annotations.Field {
	case "-":
		return ""
	case "":
	default:
		return ref.Annotations.Field
	}
	name := strings.TrimPrefix(a.Annotations.Go, "Attr")
	if rest, ok := strings.CutPrefix(name, g.Annotations.Prefix); ok {
		if r, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(r) {
			return rest
		}
	}
	return name
}

// goType is the type of a field. A whole number with a unit is a quantity; without a unit it names or orders something.
func goType(ref, a *attribute) string {
	switch kind := strings.TrimSuffix(strings.TrimPrefix(a.Type.Name, "template["), "]"); {
	case ref.Annotations.As != "":
		return ref.Annotations.As
	case a.Annotations.GoType != "":
		return "spans." + a.Annotations.GoType
	case strings.HasSuffix(kind, "["): // int[] and similar
		return "List"
	case kind == "boolean":
		return "bool"
	case kind == "int" && a.Annotations.Unit == "":
		return "Int"
	case kind == "int", kind == "double":
		return "float64"
	}
	return "string"
}
