package redact

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// minSecret is the length of the shortest text that is looked into: k=v with a name that means something.
const minSecret = 8

// shapes are the secrets that are known by their look. Where there is a group, only the group is replaced.
var shapes = regexp.MustCompile(strings.Join([]string{
	`\bA(?:KIA|SIA)[0-9A-Z]{16}\b`,           // AWS
	`\bgh[opusr]_[0-9A-Za-z]{20,}`,           // GitHub
	`\bgithub_pat_\w{20,}`,                   //
	`\bglpat-[\w-]{16,}`,                     // GitLab
	`\bhf_[0-9A-Za-z]{20,}`,                  // Hugging Face
	`\bsk-[\w-]{20,}`,                        // OpenAI, Anthropic and others with this prefix
	`\bxox[abeoprs]-[\w-]{10,}`,              // Slack
	`\bAIza[\w-]{30,}`,                       // Google
	`\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`, // JWT
	`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`, // PEM; of one that was cut, the rest
	`\b[Bb]earer\s+([\w.~+/=-]{16,})`,                      // HTTP
	`\b[A-Za-z][0-9A-Za-z+.-]*://[^\s:/@'"]*:([^\s/'"]+)@`, // a password in a URL
}, "|"))

// random says whether a match is made of random letters, and is no name in words such as sk-learn-compatible-estimators.
func random(s string) bool {
	for i := range len(s) {
		if digit(s[i]) {
			return true
		}
	}
	return s != strings.ToLower(s) && s != strings.ToUpper(s)
}

// first are the bytes that shapes begin with, but for URLs.
var first = [256]bool{'A': true, 'g': true, 'h': true, 's': true, 'x': true, 'e': true, '-': true, 'B': true, 'b': true}

// shaped says whether a text may hold a known shape, at little cost.
func shaped(s string) bool {
	if strings.IndexByte(s, '@') >= 0 && strings.Contains(s, "://") {
		return true
	}
	const shortest = 15
	for i := range len(s) - shortest + 1 {
		if !first[s[i]] || i > 0 && s[i] != '-' && (letter(s[i-1]) || digit(s[i-1])) {
			continue
		}
		switch s[i : i+2] {
		case "AK", "AS", "AI", "gh", "gi", "gl", "hf", "sk", "xo", "ey", "--", "Be", "be":
			return true
		}
	}
	return false
}

// finder looks for secrets in texts.
type finder struct {
	builtIn      bool
	keys, values []*regexp.Regexp
	hosts        *hosts // nil: they are left
}

// class is what the name of a field says, as the log has it.
func (f *finder) class(name string) class {
	for _, re := range f.keys {
		if re.MatchString(name) {
			return never
		}
	}
	if f.builtIn {
		return classify(name)
	}
	return plain
}

// text returns a text without its secrets, and counts the secrets and hosts.
func (f *finder) text(s string, n *Counts) string {
	if f.builtIn && len(s) >= minSecret {
		if strings.IndexByte(s, '=') >= 0 || strings.IndexByte(s, ':') >= 0 || strings.Contains(s, "--") || strings.Contains(s, ".. ") {
			s = f.assignments(s, n)
		}
		if shaped(s) {
			s = replace(shapes, s, n, random)
		}
	}
	for _, re := range f.values {
		s = replace(re, s, n, nil)
	}
	if f.hosts != nil {
		s = f.hosts.addresses(s, n)
	}
	return s
}

// replace replaces each match, or its first group, that is wanted.
func replace(re *regexp.Regexp, s string, n *Counts, wanted func(string) bool) string {
	var out strings.Builder
	from := 0
	for _, at := range re.FindAllStringSubmatchIndex(s, -1) {
		begin, end := at[0], at[1]
		url := false
		for i := 2; i < len(at); i += 2 {
			if at[i] >= 0 {
				begin, end = at[i], at[i+1]
				url = s[end:at[1]] == "@"
				break
			}
		}
		if match := s[begin:end]; match == Redacted || wanted != nil && !url && !wanted(match) {
			continue
		}
		out.WriteString(s[from:begin])
		out.WriteString(Redacted)
		from = end
		n.Values++
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}

// assignments replaces the values of names that stand in the text itself: JSON and Python's dicts, k=v, YAML, --options, and the dots of Megatron's arguments.
func (f *finder) assignments(s string, n *Counts) string {
	var out strings.Builder
	from := 0
	for i := 1; i < len(s)-1; i++ {
		var begin, end int
		switch c := s[i]; {
		case c == '=' || c == ':':
			end = i
		case c == ' ' && s[i-1] == '.' && i > 3 && s[i-3:i] == "...":
			end = len(strings.TrimRight(s[:i], "."))
		case c == ' ' && (letter(s[i-1]) || digit(s[i-1])):
			end = i
		default:
			continue
		}
		end = len(strings.TrimRight(s[:end], ` "'\]`))
		begin = nameStart(s, end)
		if begin >= end || begin < from || s[i] == ' ' && s[i-1] != '.' && !strings.HasPrefix(s[begin:end], "--") {
			continue
		}
		class := f.class(s[begin:end])
		if class == plain {
			continue
		}
		vb, ve := value(s, i+1, class)
		if !hides(class, s[vb:ve], false) || s[i] == ' ' && strings.HasPrefix(s[vb:], "--") {
			continue
		}
		out.WriteString(s[from:vb])
		out.WriteString(Redacted)
		from, i = ve, ve-1
		n.Keys++
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}

// maxName bounds the name before a value.
const maxName = 64

// nameStart is where the name begins that ends at s[end-1].
func nameStart(s string, end int) int {
	i := end
	for i > 0 && end-i < maxName {
		if c := s[i-1]; !letter(c) && !digit(c) && c != '_' && c != '-' && c != '.' {
			break
		}
		i--
	}
	return i
}

// value finds the value that follows at s[i:]: the text in quotes, or up to a blank or the end of a list's member.
func value(s string, i int, class class) (begin, end int) {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '>' || s[i] == '\\') {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		for j := i + 1; j < len(s); j++ {
			if s[j] == s[i] && (s[j-1] != '\\' || s[i-1] == '\\') {
				if s[j-1] == '\\' {
					return i + 1, j - 1
				}
				return i + 1, j
			}
		}
		return i + 1, len(s) // of a text that was cut
	}
	word := func(from int) int {
		if j := strings.IndexAny(s[from:], " \t\r\n,;&)]}\"'"); j >= 0 {
			return from + j
		}
		return len(s)
	}
	end = word(i)
	switch strings.ToLower(s[i:end]) {
	case "basic", "bearer", "digest", "token": // Authorization: Basic dXNlcjpw
		if class >= secret && end+1 < len(s) {
			end = word(end + 1)
		}
	}
	return i, end
}

// hides says whether the value of a field is a secret: not an empty one, or a placeholder for a secret. isNumber: the value is no text in the log.
func hides(class class, v string, isNumber bool) bool {
	switch strings.ToLower(v) {
	case "", "none", "null", "nil", "true", "false", "undefined", "unset", "n/a", Redacted, "{", "[", "(":
		return false
	}
	if v[0] == '{' || v[0] == '[' && class == maybe || strings.Trim(v, "*x.") == "" {
		return false
	}
	if v[0] == '<' && v[len(v)-1] == '>' && v == strings.ToUpper(v) { // Hugging Face prints <HUB_TOKEN>
		return false
	}
	switch class {
	case never:
		return true
	case secret:
		if isNumber {
			return false
		}
		_, err := strconv.ParseFloat(v, 64)
		return err != nil
	case maybe:
		return !isNumber && len(v) >= 12 && strings.ContainsAny(v, "0123456789") && !strings.ContainsAny(v, " <>|") && !numeric(v)
	}
	return false
}

func numeric(v string) bool {
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

// cut makes a text at most so long, at the edge of a rune.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
