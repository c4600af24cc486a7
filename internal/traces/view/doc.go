// Package view reads spans: a struct per kind of span, filled in one pass over the attributes. All code that judges, counts or draws spans reads them through
// view, with the same kinds and the same absent values.
//
// [KindOf] is the kind of a span. Our receivers and the Go API write the kind as the first attribute (spans.AttrKind), unless the name implies it; for all
// other spans (services in other languages, files older than the attribute) one function derives the kind from name, span kind and attributes.
//
// The structs, and the mapping from attributes to fields, are generated from the groups "view.…" of spans/registry. Computed values, and the recognition of
// foreign spans, are written by hand.
//
// The owner of a struct calls its Read for span after span. Read allocates nothing: strings and lists refer to the span, and the owner clears the struct before
// dropping the span.
//
// Absent values are the same in all views:
//
//   - A quantity (a time in s, a size in By, a rate, a share, a count that is added up) is a float64, and NaN if absent. An attribute that is not a finite
//     number is absent; a whole number is converted.
//   - A number that names or orders something (a rank, an iteration, a process) is an [Int], whose zero value is absent; a number below 0 is absent too.
//     Languages without integers send doubles: a double without decimals below 2⁵³ is an Int.
//   - A text is "" if absent, or of another type. A list is a [List], whose zero value is empty.
//   - A flag (incomplete, hang, …) is true only for the boolean true.
//
// Judged: a train_perf has seen the span, by a verdict or by an attribute that only train_perf adds to its kind. A batch sent again, or judged by an agent
// before a gateway, is not judged twice.
package view
