// Package secrets lists the kinds of secrets that logs are known to hold: how each is known, by whose rule, and an example.
// docs/redaction.md has the list for readers, and the tests send each example through every way out of the collector.
//
// Patterns are facts about the secrets of a service. They are taken from lists that are kept, and written anew: without the names around a secret, and as
// short as a log needs, where secrets are cut and wrapped.
package secrets

import "slices"

// Kind is one kind of secret, known by a pattern or by the names of fields.
type Kind struct {
	Name string // what it is, as docs/redaction.md calls it
	// Begins are texts in lower case, one of which stands where Pattern begins, in any case. A letter or digit begins a word there.
	Begins []string
	// Pattern is RE2, from one of Begins on. Its group is the secret; without a group, all of it is.
	Pattern string
	// Names are the last words of the names of fields whose values are secrets, with blanks between words.
	Names []string
	Looks Looks
	// Source says whose rule: a list and its rule, or a document.
	Source   string
	Examples []Example
}

// Example is a text with a secret in it. No text stands in the source as one literal where a scanner of sources would take it for a real secret.
type Example struct{ Text, Secret string }

// Looks says what a secret must look like, beyond its pattern or name.
type Looks uint8

// The looks of secrets.
const (
	Anything Looks = iota
	Text           // no number
	Phrase         // no number, and no path
	Password       // 6 characters or more, of them a digit, and no number, path or word of many words
	Long           // 12 characters or more, of them a digit, and no number
	Random         // 12 letters and digits in a row, of both kinds
	Digits         // a digit, or letters of both cases
	Basic          // base64 of name:password
	Nothing        // no value is a secret
)

// The lists that rules are from.
const (
	gitleaks    = "gitleaks v8.30.0: "     // github.com/gitleaks/gitleaks, config/gitleaks.toml
	betterleaks = "betterleaks v1.7.0: "   // github.com/betterleaks/betterleaks, config/betterleaks.toml
	kingfisher  = "kingfisher v1.10.0: "   // github.com/mongodb/kingfisher, data/rules
	trufflehog  = "trufflehog v3.97.0: "   // github.com/trufflesecurity/trufflehog, pkg/detectors
	arl         = "adysec/ARL 09570bb: "   // github.com/adysec/ARL, tools/with/rules.yml
	manual      = "the command's manual: " // where an option is described
)

// Parts of patterns.
const (
	slash = `(?:\\*/|%2[Ff])`             // as it is, as JSON writes it, and in a URL that is part of another
	equal = `(?:=|%3[Dd])`                // likewise
	apart = `[\s'",\[\]\\]`               // between the words of a command, or of argv as Python and JSON print it
	word  = `[^\s'",\[\]\\]+`             // a word of a command
	sofar = `(?:[^\n|;&]*?` + apart + `)` // words of the same command
)

// Kinds returns all kinds.
func Kinds() []Kind { return slices.Concat(named, clouds, models, tools, webhooks, general, commands) }

func one(text, secret string) []Example { return []Example{{text, secret}} }
