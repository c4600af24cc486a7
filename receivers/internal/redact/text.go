package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/secrets"
	"github.com/trainbridge/trainbridge/spans"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// minSecret is the length of the shortest searched text: k=v with a meaningful name.
const minSecret = 8

// finder looks for secrets in texts, by the table of internal/secrets and by the patterns of the configuration.
type finder struct {
	builtIn      bool             // with the table
	keys, values []*regexp.Regexp // Config.Keys and Config.Values
	hosts        *hosts           // nil: hosts stay
}

// class says which values of a field are secrets, by the field's name in the log.
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

// text returns a text without its secrets, and adds to n the secrets and hosts: values behind a secret's name (api_key=…), texts of a secret's form (hf_…),
// what Config.Values matches, and IP addresses, if hosts are hashed.
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

// replace replaces each match of a pattern, or only the first group of it that took part in the match, if the pattern has groups. n counts the replaced texts.
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

// edit collects the replacements in a text, from its beginning to its end. Without one, text returns the text itself.
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

// text is s with its replacements.
func (e *edit) text(s string) string {
	if e.from == 0 {
		return s
	}
	e.out.WriteString(s[e.from:])
	return e.out.String()
}

// look says, in one pass over a text, whether the text may have names with values, and known shapes. Most texts have neither, and need no slower search.
func look(s string) (pairs, shapes bool) {
	for i := range len(s) - 1 {
		meanings := bytesOf[s[i]]
		if meanings == 0 {
			continue
		}
		if meanings&separates != 0 && !pairs {
			pairs = mayPair(s, i)
		}
		if meanings&begins != 0 && !shapes {
			shapes = beginsAt(s, i) != nil
		}
		if pairs && shapes {
			break
		}
	}
	return pairs, shapes
}

// bytesOf is the possible meanings of a byte, separates and begins: most bytes of a text have none, and cost a look-up only.
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

// mayPair says whether the separator of a name and its value may begin at s[i]: a sign (separator), the dashes of an option ("--token X"), or dots ("hub_token
// .... X").
func mayPair(s string, i int) bool {
	if c := s[i]; c == '-' || c == '.' {
		return s[i+1] == c
	}
	return separator(s, i) > 0
}

// separator is the number of bytes at s[i] that may separate a name from its value; 0: none. Signs are = : | ： ＝ │, and %3D and %3A of a URL. A blank separates
// behind an option ("--token X") or dots ("hub_token .... X"), a comma behind a text in quotes ("'--token', 'X'").
func separator(s string, i int) int {
	switch c := s[i]; c {
	case '=', ':', '|':
		return 1
	case ' ':
		if i <= 3 {
			return 0
		}
		behindDots := s[i-3:i] == "..."
		behindOption := ascii.IsAlphanumeric(s[i-1]) && s[nameStart(s, i):][:2] == "--"
		if behindDots || behindOption {
			return 1
		}
	case ',':
		if i > 3 && (s[i-1] == '\'' || s[i-1] == '"') {
			return 1
		}
	case '%':
		if i+2 < len(s) && s[i+1] == '3' && (s[i+2]|0x20 == 'd' || s[i+2]|0x20 == 'a') { // 0x20 makes a letter small
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
	truncated := isCut(s)
	for i := 1; i < len(s)-1; i++ {
		if bytesOf[s[i]]&separates == 0 && s[i] != ' ' {
			continue
		}
		width := separator(s, i)
		if width == 0 {
			continue
		}
		begin, end, looks := f.nameBefore(s, out.from, i)
		inReplaced := begin < out.from
		if looks == secrets.Nothing || inReplaced || s[i] == ',' && !listed(s, begin, i) {
			continue
		}
		from, to := value(s, i+width, s[begin:end], looks)
		if from >= to {
			continue
		}
		if s[i] == ' ' && strings.HasPrefix(s[from:], "--") { // the next option: the one before has no value
			continue
		}
		whole := !truncated || to < len(s) // the beginning of a secret need not look as the whole does
		if whole && !hides(looks, s[from:to]) {
			continue
		}
		by := Redacted
		// {"password": 12345678} stays JSON: the quotes of the name are put around the replacement of a value without quotes.
		if quotes := s[end:i]; s[i] == ':' && s[from-1] != '"' && s[from-1] != '\'' && strings.Trim(quotes, `\"'`) == "" {
			by = quotes + Redacted + quotes
		}
		out.put(s, from, to, by)
		n.Keys++
		i = to - 1
	}
	return out.text(s)
}

// nameBefore finds the name that ends before the separator at s[i], and which of its values are secrets. A name that alone means nothing, or little (key,
// token), is taken with up to two words before, in a sentence: "API key: X". Words before s[least], the end of the last replaced part, are no part of the name.
// Quotes and brackets behind the name do not count. Where a name in Chinese begins is unknown: begin is then the name's last byte, enough for the caller to see
// that the name stands behind all replaced parts. No name: begin is end.
func (f *finder) nameBefore(s string, least, i int) (begin, end int, looks secrets.Looks) {
	end = len(strings.TrimRight(s[:i], ` "'\].`))
	for strings.HasSuffix(s[:end], "%22") { // a quote in a URL
		end -= 3
	}
	begin = nameStart(s, end)
	if begin == end {
		if end > 2 && s[end-1] >= utf8.RuneSelf { // 密码: no blank separates Chinese words, so the end of the text before decides
			begin = end - min(end, maxName)
			return end - 1, end, f.class(strings.ToValidUTF8(s[begin:end], ""))
		}
		return begin, end, secrets.Nothing
	}
	looks = f.class(s[begin:end])
	for range 2 {
		decided := looks != secrets.Nothing && looks != secrets.Long
		behindWord := begin >= 2 && s[begin-1] == ' ' && ascii.IsLetter(s[begin-2])
		tooLong := end-begin > 16 // a long identifier, not a word of a phrase such as "API key"
		if decided || !behindWord || tooLong {
			break
		}
		from := nameStart(s, begin-1)
		if from < least {
			break
		}
		// Random: any word before "key", too weak a sign in a sentence.
		if more := f.class(s[from:end]); more != secrets.Nothing && more != secrets.Random {
			return from, end, more
		}
		begin = from
	}
	return begin, end, looks
}

// listed says whether the name that begins at s[begin], in quotes, and the text behind the comma at s[i] belong together: as an option of a command line,
// ['--api-key', 'X'], or as a pair, ('api_key', 'X'). In any other list a text is not the value of the text before.
func listed(s string, begin, i int) bool {
	if s[begin] == '-' {
		return true
	}
	for begin > 0 && (s[begin-1] == '"' || s[begin-1] == '\'' || s[begin-1] == '\\') {
		begin--
	}
	// A tuple behind the comma is no text: ('api_key', ('X', 1)).
	return begin > 0 && s[begin-1] == '(' && !strings.HasPrefix(strings.TrimLeft(s[i+1:], " "), "(")
}

// isCut says whether a text may have been truncated to the length of an attribute, and with it a secret at its end.
func isCut(s string) bool { return len(s) > spans.MaxAttributeBytes-utf8.UTFMax }

// maxName bounds the name before a value.
const maxName = 64

// nameStart is the start of the name that ends at s[end-1]: letters, digits, _ - and dots, at most maxName bytes. Letters and digits of an escape before the
// name (\n, %26, a terminal's colour) do not belong to the name.
func nameStart(s string, end int) int {
	i := end
	for i > 0 && end-i < maxName {
		if c := s[i-1]; !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '_' && c != '-' && c != '.' {
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

// value finds the value of a name behind the separator, from s[i] on: the text in quotes, a list (if looks is secrets.Anything), or the word up to a blank or
// the end of a list's member. The value of an HTTP header (looks is secrets.Text) may be several words: a scheme and its credentials, or the cookies. begin and
// end are without quotes; no value: begin is end.
func value(s string, i int, name string, looks secrets.Looks) (begin, end int) {
	// Blanks, escaped quotes and the rest of => or := before the value.
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
		end = i + strings.IndexAny(s[i:]+"\n", "\n\"'") // the line end is added to be found in any case
	}
	if last := name[wordStart(name, len(name)):]; strings.EqualFold(last, "cookie") || strings.EqualFold(last, "cookies") {
		for end+2 < len(s) && s[end:end+2] == "; " {
			end = wordEnd(s, end+2)
		}
	}
	return i, end
}

// quoted is the end of the text whose opening quote is at s[i]: before the closing quote. An escaped quote ends a text only if the opening quote is escaped,
// too: "{\"a\": \"X\"}" within a JSON text.
func quoted(s string, i int) (end int) {
	openingEscaped := i > 0 && s[i-1] == '\\'
	for j := i + 1; j < len(s); j++ {
		if s[j] == s[i] && (s[j-1] != '\\' || openingEscaped) {
			if s[j-1] == '\\' {
				return j - 1 // the backslash belongs to the quote
			}
			return j
		}
	}
	return len(s) // of a truncated text
}

// wordEnd is the end of the word that begins at s[i]: before a blank, the end of a list's member, a quote, a Chinese character or sign, or an escape of a sign
// in a URL or an escaped text. A call with a text in quotes, SecretStr('X'), is one word to the end of the text; any other "(" belongs to the word.
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

// hides says whether a value is a secret: it looks as the secrets of its name do, and is no placeholder for one, such as None, ***, {…} or <HUB_TOKEN>.
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

// looksLike says whether a text, not empty, looks as secrets of a kind do: the constants of secrets.Looks describe each. Signs of other texts (blanks, <, |)
// and paths rule some out.
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

// numeric says whether a text is a number.
func numeric(v string) bool {
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

// isPath says whether a text, not empty, is a path or a URL: /data, ./a, ~/a, https://…, C:\data.
func isPath(v string) bool {
	return strings.IndexByte("/.~", v[0]) >= 0 || strings.Contains(v, "://") || len(v) > 2 && v[1] == ':' && (v[2] == '\\' || v[2] == '/')
}

// mixed says whether a text has a digit, or letters of both cases.
func mixed(v string) bool {
	return strings.ContainsAny(v, "0123456789") || v != strings.ToLower(v) && v != strings.ToUpper(v)
}

// random says whether a text has a run of 12 or more letters and digits, of both kinds: a generated key has, and a name made of words, such as
// sk-learn-compatible-estimators-v2, has not.
func random(v string) bool {
	const enough = 12
	letters, digits := 0, 0 // of the current run
	for i := range len(v) {
		switch {
		case ascii.IsLetter(v[i]):
			letters++
		case ascii.IsDigit(v[i]):
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

// cut truncates a text to at most most bytes, at the edge of a rune.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
