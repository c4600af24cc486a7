// Package view reads spans: a struct per kind of span, filled in one pass over the attributes. Code that judges, counts or draws spans reads them through this
// package, so that all have one idea of what a span is and which of its values are absent.
//
// [KindOf] says what a span is. Our receivers and the Go API write it as the first attribute (spans.AttrKind) unless the name says it; of all
// other spans (services in other languages, files from before the attribute was there) one function tells the kind by name, span kind and attributes.
//
// The structs, and how attributes become fields, are generated from the groups "view.…" of spans/registry. Written by hand is what is computed, and how spans
// of other writers are recognised.
//
// The owner of a struct calls its Read, again and again for span after span. Read allocates nothing: strings and lists refer to the span, so the owner
// clears the struct when it lets go of the span.
//
// How absent values are read, the same in all views:
//
//   - A quantity (a time in s, a size in By, a rate, a share, a count that is added up) is a float64, and NaN when it is absent. An attribute that is not a
//     finite number is absent; a whole number is taken as one with decimals.
//   - A number that names or orders something (a rank, an iteration, a process) is an [Int], whose zero value is absent; a number below 0 is absent too.
//     Languages that have no integers send doubles: a double without decimals below 2⁵³ is one.
//   - A text is "" when it is absent, or of another type. A list is a [List], whose zero value is empty.
//   - A flag (incomplete, hang, …) is true only where the attribute is the boolean true.
//
// Judged says that a train_perf has seen the span: it has a verdict, or an attribute that only train_perf adds to its kind. So a batch that is sent again, or
// that an agent has judged before a gateway, is not judged twice.
package view
