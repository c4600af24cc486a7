package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/spans"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// minSecret is the length of the shortest searched text: k=v with a meaningful name.
const minSecret = 8

// finder looks for secrets in texts.
type finder struct {
	builtIn      bool
	keys, values []*regexp.Regexp
	hosts        *hosts // nil: hosts stay
}

// class classifies a field by its name in the log.
func (f *finder) class(name string) secrets.Looks {
	for _, re := range f.keys {
		if re.MatchString(name) {
			return secrets.Anything
		}
	}
	if f.builtIn {
		return classify(name)
	}
	return secrets.Nothing
}

// text returns a text without its secrets, and counts the secrets and hosts.
func (f *finder) text(s string, n *Counts) string {
	if f.builtIn && len(s) >= minSecret {
		pairs, shapes := look(s)
		if pairs {
			s = f.assignments(s, n)
		}
		if shapes {
			s = shaped(s, n)
		}
	}
	for _, re := range f.values {
		s = replace(re, s, n)
	}
	if f.hosts != nil {
		s = f.hosts.addresses(s, n)
	}
	return s
}

// replace replaces each match, or its first group.
func replace(re *regexp.Regexp, s string, n *Counts) string {
	var out edit
	for _, at := range re.FindAllStringSubmatchIndex(s, -1) {
		begin, end := at[0], at[1]
		for i := 2; i < len(at); i += 2 {
			if at[i] >= 0 {
				begin, end = at[i], at[i+1]
				break
			}
		}
		if s[begin:end] != Redacted {
			out.put(s, begin, end, Redacted)
			n.Values++
		}
	}
	return out.text(s)
}

// edit is a text with some parts replaced.
type edit struct {
	out  strings.Builder
	from int // start of the unchanged rest
}

// put replaces a part behind all parts replaced before.
func (e *edit) put(s string, begin, end int, by string) {
	e.out.WriteString(s[e.from:begin])
	e.out.WriteString(by)
	e.from = end
}

func (e *edit) text(s string) string {
	if e.from == 0 {
		return s
	}
	e.out.WriteString(s[e.from:])
	return e.out.String()
}

// look says, in one pass over a text, whether the text may have names with values, and known shapes.
func look(s string) (pairs, shapes bool) {
	for i := range len(s) - 1 {
		is := bytesOf[s[i]]
		if is == 0 {
			continue
		}
		if is&separates != 0 && !pairs {
			pairs = mayPair(s, i)
		}
		if is&begins != 0 && !shapes {
			shapes = beginsAt(s, i) != nil
		}
		if pairs && shapes {
			break
		}
	}
	return pairs, shapes
}

// bytesOf is the possible meanings of a byte.
var bytesOf = func() (out [256]uint8) {
	for _, c := range [...]byte{'=', ':', '|', ',', '%', '-', '.', fullWidth, boxDrawing} {
		out[c] |= separates
	}
	for c := range out {
		if len(shapesOf[c]) > 0 {
			out[c] |= begins
		}
	}
	return out
}()

const (
	separates  = 1 << iota // a name and a value
	begins                 // a known shape
	fullWidth  = 0xEF      // the first byte of ： and ＝
	boxDrawing = 0xE2      // of │
)

// mayPair says whether a name and its value may stand at s[i], including an option or dots before a value.
func mayPair(s string, i int) bool {
	if c := s[i]; c == '-' || c == '.' {
		return s[i+1] == c
	}
	return separator(s, i) > 0
}

// separator is the number of bytes at s[i] that separate a name from its value; 0: none. A blank separates behind an option or dots, a comma between texts in
// quotes.
func separator(s string, i int) int {
	switch c := s[i]; c {
	case '=', ':', '|':
		return 1
	case ' ':
		if i > 3 && (s[i-3:i] == "..." || (letter(s[i-1]) || digit(s[i-1])) && s[nameStart(s, i):][:2] == "--") {
			return 1
		}
	case ',':
		if i > 3 && (s[i-1] == '\'' || s[i-1] == '"') {
			return 1
		}
	case '%':
		if i+2 < len(s) && s[i+1] == '3' && (s[i+2]|0x20 == 'd' || s[i+2]|0x20 == 'a') {
			return 3
		}
	case fullWidth, boxDrawing:
		if rest := s[i:]; strings.HasPrefix(rest, "：") || strings.HasPrefix(rest, "＝") || strings.HasPrefix(rest, "│") {
			return 3
		}
	}
	return 0
}

// assignments replaces the values of names in the text itself: JSON and Python's dicts, k=v, YAML, --options, argv, tables, the dots of Megatron's arguments.
func (f *finder) assignments(s string, n *Counts) string {
	var out edit
	open := isCut(s)
	for i := 1; i < len(s)-1; i++ {
		if bytesOf[s[i]]&separates == 0 && s[i] != ' ' {
			continue
		}
		width := separator(s, i)
		if width == 0 {
			continue
		}
		begin, end, looks := f.nameBefore(s, i)
		if looks == secrets.Nothing || begin < out.from || s[i] == ',' && !listed(s, begin, i) {
			continue
		}
		vb, ve := value(s, i+width, s[begin:end], looks)
		if vb >= ve || s[i] == ' ' && strings.HasPrefix(s[vb:], "--") || !hides(looks, s[vb:ve]) && (!open || ve < len(s)) {
			continue
		}
		by := Redacted
		if q := s[end:i]; s[i] == ':' && s[vb-1] != '"' && s[vb-1] != '\'' && strings.Trim(q, `\"'`) == "" {
			by = q + Redacted + q // {"password": 12345678} stays JSON
		}
		out.put(s, vb, ve, by)
		n.Keys++
		i = ve - 1
	}
	return out.text(s)
}

// nameBefore finds the name before a separator, with preceding words where they matter: API key: X.
func (f *finder) nameBefore(s string, i int) (begin, end int, looks secrets.Looks) {
	end = len(strings.TrimRight(s[:i], ` "'\].`))
	for strings.HasSuffix(s[:end], "%22") {
		end -= 3
	}
	begin = nameStart(s, end)
	if begin == end {
		if end > 2 && s[end-1] >= utf8.RuneSelf { // 密码
			begin = end - min(end, maxName)
			return end - 1, end, f.class(strings.ToValidUTF8(s[begin:end], ""))
		}
		return begin, end, secrets.Nothing
	}
	looks = f.class(s[begin:end])
	for range 2 {
		if last := s[begin:end]; looks != secrets.Nothing && looks != secrets.Long || begin < 2 || s[begin-1] != ' ' || len(last) > 16 || !letter(s[begin-2]) {
			break
		}
		from := nameStart(s, begin-1)
		if more := f.class(s[from:end]); more != secrets.Nothing && more != secrets.Random {
			return from, end, more
		}
		begin = from
	}
	return begin, end, looks
}

// listed says whether a name in quotes and the text behind the comma at s[i] belong together: ['--api-key', 'X'] and ('api_key', 'X').
func listed(s string, begin, i int) bool {
	if s[begin] == '-' {
		return true
	}
	for begin > 0 && (s[begin-1] == '"' || s[begin-1] == '\'' || s[begin-1] == '\\') {
		begin--
	}
	return begin > 0 && s[begin-1] == '(' && !strings.HasPrefix(strings.TrimLeft(s[i+1:], " "), "(")
}

// isCut says whether a text may have been truncated, by its length.
func isCut(s string) bool { return len(s) > spans.MaxAttributeBytes-utf8.UTFMax }

// maxName bounds the name before a value.
const maxName = 64

// nameStart is the start of the name that ends at s[end-1].
func nameStart(s string, end int) int {
	i := end
	for i > 0 && end-i < maxName {
		if c := s[i-1]; !letter(c) && !digit(c) && c != '_' && c != '-' && c != '.' {
			break
		}
		i--
	}
	if i == 0 || i == end {
		return i
	}
	switch c := s[i-1]; {
	case c == '\\' && (s[i] == 'n' || s[i] == 'r' || s[i] == 't'): // a line end as JSON writes it
		return i + 1
	case c == '%' && end-i > 2: // %26, %3F
		return i + 2
	case c == '[' || c == ';': // a colour
		if rest := strings.TrimLeft(s[i:end], "0123456789"); len(rest) < end-i && rest != "" && rest[0] == 'm' {
			return end - len(rest) + 1
		}
	}
	return i
}

// value finds the value at s[i:]: the text in quotes, a list, or up to a blank or the end of a list's member.
func value(s string, i int, name string, looks secrets.Looks) (begin, end int) {
	for i < len(s) && strings.IndexByte(" \t>\\=:|", s[i]) >= 0 {
		i++
	}
	if strings.HasPrefix(s[i:], "%22") {
		i += 3
	}
	if i+1 < len(s) && (s[i] == 'b' || s[i] == 'u' || s[i] == 'r') && (s[i+1] == '"' || s[i+1] == '\'') { // as Python prints bytes
		i++
	}
	switch {
	case strings.HasPrefix(s[i:], Redacted):
		return i, i + len(Redacted)
	case i < len(s) && (s[i] == '"' || s[i] == '\''):
		return i + 1, quoted(s, i)
	}
	if i < len(s) && s[i] == '[' && looks == secrets.Anything {
		if j := strings.IndexByte(s[i:], ']'); j >= 0 {
			return i, i + j + 1
		}
		return i, len(s) // of a truncated text
	}
	end = wordEnd(s, i)
	if looks != secrets.Text {
		return i, end
	}
	switch strings.ToLower(s[i:end]) {
	case "basic", "bearer", "token", "negotiate", "apikey": // Authorization: Basic dXNlcjpw
		if end+1 < len(s) {
			end = wordEnd(s, end+1)
		}
	case "digest", "aws4-hmac-sha256", "oss4-hmac-sha256", "tc3-hmac-sha256", "hmac-sha256": // name=value, name=value
		end = i + strings.IndexAny(s[i:]+"\n", "\n\"'")
	}
	if last := name[wordStart(name, len(name)):]; strings.EqualFold(last, "cookie") || strings.EqualFold(last, "cookies") {
		for end+2 < len(s) && s[end:end+2] == "; " {
			end = wordEnd(s, end+2)
		}
	}
	return i, end
}

// quoted is the end of the text whose quote is at s[i].
func quoted(s string, i int) (end int) {
	for j := i + 1; j < len(s); j++ {
		if s[j] == s[i] && (s[j-1] != '\\' || i > 0 && s[i-1] == '\\') {
			if s[j-1] == '\\' {
				return j - 1
			}
			return j
		}
	}
	return len(s) // of a truncated text
}

// wordEnd is the end of the word that begins at s[i]: before a blank, the end of a list's member, a quote, or an escape of one of them in a URL or an escaped
// text.
func wordEnd(s string, i int) int {
	for j := i; j < len(s); j++ {
		switch c := s[j]; {
		case ends[c]:
			if c == '(' && j+1 < len(s) && (s[j+1] == '"' || s[j+1] == '\'') { // SecretStr('X')
				return quoted(s, j+1)
			}
			if c != '(' {
				return j
			}
		case c == '%' && (strings.HasPrefix(s[j:], "%26") || strings.HasPrefix(s[j:], "%22")):
			return j
		case c == '\\' && j+1 < len(s) && strings.IndexByte(`nrt"'`, s[j+1]) >= 0:
			return j
		case c >= utf8.RuneSelf:
			if r, _ := utf8.DecodeRuneInString(s[j:]); unicode.Is(unicode.Han, r) || strings.ContainsRune("，。；、）】”」│", r) {
				return j
			}
		}
	}
	return len(s)
}

// ends are the bytes that end a word, and the parenthesis of a call.
var ends = func() (out [256]bool) {
	for _, c := range []byte(" \t\r\n,;&)]}(|\"'`") {
		out[c] = true
	}
	return out
}()

// hides says whether a value is a secret: not empty, and no placeholder for a secret.
func hides(looks secrets.Looks, v string) bool {
	switch strings.ToLower(v) {
	case "", "none", "null", "nil", "true", "false", "undefined", "unset", "n/a", Redacted, "{", "[", "(", "[]", "required", "optional":
		return false
	}
	if v[0] == '{' || strings.Trim(v, "*x.") == "" {
		return false
	}
	if v[0] == '<' && v[len(v)-1] == '>' && v == strings.ToUpper(v) { // Hugging Face prints <HUB_TOKEN>
		return false
	}
	return looksLike(looks, v)
}

// looksLike says whether a text looks as a kind of secrets does.
func looksLike(looks secrets.Looks, v string) bool {
	switch looks {
	case secrets.Anything:
		return true
	case secrets.Text:
		return !numeric(v)
	case secrets.Phrase:
		return !numeric(v) && !isPath(v)
	case secrets.Password:
		return len(v) >= 6 && strings.ContainsAny(v, "0123456789") && strings.IndexFunc(v, unicode.IsLetter) >= 0 && !strings.ContainsAny(v, " <>|") &&
			!numeric(v) && !isPath(v)
	case secrets.Long:
		return len(v) >= 12 && strings.ContainsAny(v, "0123456789") && !strings.ContainsAny(v, " <>|") && v[0] != '[' && !numeric(v)
	case secrets.Random:
		return random(v)
	case secrets.Digits:
		return mixed(v)
	case secrets.Basic:
		return isBasic(v)
	}
	return false
}

func numeric(v string) bool {
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

func isPath(v string) bool {
	return strings.IndexByte("/.~", v[0]) >= 0 || strings.Contains(v, "://") || len(v) > 2 && v[1] == ':' && (v[2] == '\\' || v[2] == '/')
}

// mixed says whether a text has a digit, or letters of both cases.
func mixed(v string) bool {
	return strings.ContainsAny(v, "0123456789") || v != strings.ToLower(v) && v != strings.ToUpper(v)
}

// random says whether a run of letters and digits, of both kinds, is long enough: no name in words, such as sk-learn-compatible-estimators-v2.
func random(v string) bool {
	const enough = 12
	letters, digits := 0, 0 // of the current run
	for i := range len(v) {
		switch {
		case letter(v[i]):
			letters++
		case digit(v[i]):
			digits++
		default:
			letters, digits = 0, 0
		}
		if letters > 0 && digits > 0 && letters+digits >= enough {
			return true
		}
	}
	return false
}

// isBasic says whether a text is base64 of name:password.
func isBasic(v string) bool {
	b, err := base64.StdEncoding.DecodeString(v)
	return err == nil && slices.Contains(b, ':') && utf8.Valid(b) && !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' })
}

// cut truncates a text to a length, at the edge of a rune.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
