package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFields: names and types of fields follow from the attribute, where the view says nothing else.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		goName, kind, unit, goType, prefix, field, as string
		name, want                                    string
	}{
		{"AttrNCCLDuration", "double", "s", "", "NCCL", "", "", "Duration", "float64"},
		{"AttrStepsCovered", "int", "{step}", "", "Step", "", "", "StepsCovered", "float64"}, // a word does not end with the prefix
		{"AttrNCCLSequence", "int", "", "", "NCCL", "", "", "Sequence", "Int"},
		{"AttrIteration", "int", "{iteration}", "", "", "", "Int", "Iteration", "Int"},
		{"AttrNCCLHang", "boolean", "", "", "", "", "", "NCCLHang", "bool"},
		{"AttrNCCLRanksStuck", "int[]", "", "", "NCCL", "Stuck", "", "Stuck", "List"},
		{"AttrHostName", "", "", "", "", "Host", "", "Host", "string"},
		{"AttrTimeSource", "string", "", "TimeSource", "", "", "", "TimeSource", "spans.TimeSource"},
		{"StepTimePrefix", "template[double]", "s", "", "", "part(key).Seconds", "", "part(key).Seconds", "float64"},
		{"AttrFlopFormula", "string", "", "", "", "-", "", "", "string"},
	} {
		g, ref, a := &group{}, &attribute{}, &attribute{Type: attrType{Name: c.kind}}
		g.Annotations.Prefix, ref.Annotations.Field, ref.Annotations.As = c.prefix, c.field, c.as
		a.Annotations.Go, a.Annotations.Unit, a.Annotations.GoType = c.goName, c.unit, c.goType
		if name, got := fieldName(g, ref, a), goType(ref, a); name != c.name || got != c.want {
			t.Errorf("%s: %s %s, want %s %s", c.goName, name, got, c.name, c.want)
		}
	}
}

// TestViews: a wrong view is an error, and nothing is generated.
func TestViews(t *testing.T) {
	ds, err := read(filepath.Join(root, "spans/registry"))
	if err != nil {
		t.Fatal(err)
	}
	if vs, err := views(ds); err != nil || len(vs) < 20 {
		t.Fatalf("%d views: %v", len(vs), err)
	}
	for name, spoil := range map[string]func(g *group){
		"no attribute nccl.none has a Go name": func(g *group) { g.Attributes[0].Ref = "nccl.none" },
		"nothing reads nccl.comm.rank as a Spoon": func(g *group) {
			g.Attributes[0].Annotations.As = "Spoon"
		},
	} {
		ds, err := read(filepath.Join(root, "spans/registry"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if i := slices.IndexFunc(d.Views, func(g *group) bool { return g.Annotations.View == "Rank" }); i >= 0 {
				spoil(d.Views[i])
			}
		}
		if _, err := views(ds); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}
