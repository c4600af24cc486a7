// Package secrets lists the kinds of secrets found in logs: how each is recognized, the source of the rule, and an example. docs/reference/redaction.md has the
// list for readers, and the tests send each example through every output of the collector.
//
// Patterns are facts about the secrets of a service, taken from maintained lists and rewritten: without the names around a secret, and short, because logs cut
// and wrap secrets.
package secrets

import "slices"

// Kind is one kind of secret, recognized by a pattern or by the names of fields.
type Kind struct {
	Name string // the name in docs/reference/redaction.md
	// Begins are texts in lower case; one of them begins Pattern, in any case. A letter or digit must begin a word.
	Begins []string
	// Pattern is RE2, beginning with one of Begins. Its group is the secret; without a group, the whole match is.
	Pattern string
	// Names are the last words of the names of fields with secret values, with blanks between words.
	Names []string
	Looks Looks
	// Source is the source of the rule: a list with the rule's name, or a document.
	Source   string
	Examples []Example
}

// Example is a text with a secret in it. No text is a single literal in the source if a source scanner would take the text for a real secret.
type Example struct{ Text, Secret string }

// Looks is the form required of a secret, beyond its pattern or name.
type Looks uint8

// The looks of secrets.
const (
	Anything Looks = iota
	Text           // no number
	Phrase         // no number, and no path
	Password       // 6 characters or more, with a digit, and no number, path or word of many words
	Long           // 12 characters or more, with a digit, and no number
	Random         // 12 letters and digits in a row, of both kinds
	Digits         // a digit, or letters of both cases
	Basic          // base64 of name:password
	Nothing        // no value is a secret
)

// The lists of the rules.
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
	slash = `(?:\\*/|%2[Ff])`             // plain, escaped by JSON, and in a URL within another
	equal = `(?:=|%3[Dd])`                // in the same forms
	apart = `[\s'",\[\]\\]`               // between the words of a command, or of argv as printed by Python and JSON
	word  = `[^\s'",\[\]\\]+`             // a word of a command
	sofar = `(?:[^\n|;&]*?` + apart + `)` // words of the same command
)

// Kinds returns all kinds.
func Kinds() []Kind { return slices.Concat(named, clouds, models, tools, webhooks, general, commands) }

func one(text, secret string) []Example { return []Example{{text, secret}} }
