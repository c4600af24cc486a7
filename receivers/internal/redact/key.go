package redact

import "strings"

// class says whether the value of a field is a secret, by the field's name.
type class uint8

const (
	plain  class = iota
	maybe        // a secret where the value looks like one: "token" is a word of models too
	secret       // a text is a secret
	never        // a secret whatever it is, a number too
)

// maxWords bounds the words looked at, from the end of a name: the last words say what a field is.
const maxWords = 4

// classify reads the name of a field: words in snake, camel or kebab case, with dots between the names of objects.
func classify(name string) class {
	for rest := name; ; {
		parent, after, ok := strings.Cut(rest, ".")
		if !ok {
			break
		}
		if strings.ToLower(parent) == "secrets" || strings.ToLower(parent) == "credentials" {
			return secret
		}
		rest = after
	}
	var words [maxWords]string // the last one first
	n := 0
	for end := len(name); end > 0 && n < maxWords; {
		begin := wordStart(name, end)
		word := name[begin:end]
		end = begin
		if word = strings.TrimRight(word, "0123456789_-./: []'\""); word != "" {
			words[n] = strings.ToLower(word)
			n++
		}
	}
	w := words[:]
	if n > 1 && asText[w[0]] {
		w = append(w[1:], "")
	}
	last, before := w[0], w[1]
	switch {
	case last == "key" && keysOf[before], last == "id" && before == "key" && w[2] == "access":
		return never
	case strings.HasSuffix(last, "password") || strings.HasSuffix(last, "passwd") || strings.HasSuffix(last, "passphrase"), oneWord[last]:
		return never
	case last == "secret" || last == "authorization" || last == "credential" || last == "credentials" || last == "cookie" || last == "cookies":
		return secret
	case last == "auth" && authOf[before], last == "string" && (before == "connection" || before == "conn"), last == "signature" && before == "amz":
		return secret
	case last == "token" && tokensOf[before]:
		return secret
	case last == "token" && !tokensOfModels[before], last == "dsn":
		return maybe
	}
	return plain
}

// wordStart is where the word begins that ends at name[end-1]. Of "HTTPApiKey" the words are HTTP, Api and Key.
func wordStart(name string, end int) int {
	i := end - 1
	for i > 0 {
		c, before := name[i], name[i-1]
		switch {
		case !letter(before) && letter(c):
			return i
		case upper(c) && lower(before):
			return i
		case upper(c) && upper(before) && i+1 < end && lower(name[i+1]):
			return i
		}
		i--
	}
	return 0
}

func upper(c byte) bool  { return c-'A' < 26 }
func lower(c byte) bool  { return c-'a' < 26 }
func letter(c byte) bool { return upper(c) || lower(c) }
func digit(c byte) bool  { return c-'0' < 10 }

func set(words string) map[string]bool {
	out := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

var (
	// asText may follow the word that counts.
	asText = set("value text str plain raw header")
	// keysOf stand before "key". Of models and data, and no secrets: attention_key, cache_key, primary_key, public_key.
	keysOf = set(
		"api access secret private session encryption signing ssh auth authentication account admin master hmac shared subscription wandb comet neptune openai " +
			"anthropic azure gcp deploy license",
	)
	authOf = set("basic http proxy registry docker npm")
	// oneWord are words written as one.
	oneWord = set(
		"apikey secretkey accesskey privatekey authkey sessionkey accesstoken authtoken apitoken hubtoken sessiontoken refreshtoken bearertoken clientsecret " +
			"accountkey sharedaccesskey",
	)
	// tokensOf stand before "token" where a token is a secret, and not a part of a model's text.
	tokensOf = set("api access auth authentication authorization bearer refresh session security secret hub hf huggingface wandb github gh gitlab slack bot " +
		"oauth jwt csrf xsrf deploy service personal pat " +
		"openai anthropic azure aws gcp google kaggle comet neptune mlflow clearml registry docker npm pypi webhook write login private client modelscope " +
		"swanlab vault consul sts")
	// tokensOfModels stand before "token" in the names of models and of their data.
	tokensOfModels = set("eos bos pad padding unk unknown sep cls mask image img video audio speech vision visual special next per last first prev previous " +
		"current cur num max min avg mean total sum start " +
		"stop end begin new add additional prompt generated gen output input in out single extra decoder encoder think thinking tool prefix suffix middle fill " +
		"fim sot eot eod eom boi eoi placeholder " +
		"forced suppress modality text system assistant user kv draft accepted each every one drop target source loss sampled")
)
