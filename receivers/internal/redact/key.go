package redact

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/secrets"
)

// maxWords bounds the words that count, from the end of a name: the last words say the meaning of a field.
const maxWords = 4

// classify says which values of a field are secrets, by the name of the field (aws.secretAccessKey, HF_TOKEN, db-password-2): the last words decide. Words are
// in snake, camel or kebab case, with dots between the names of objects.
func classify(name string) secrets.Looks {
	// Anything within an object of secrets is one.
	for rest := name; ; {
		parent, after, ok := strings.Cut(rest, ".")
		if !ok {
			break
		}
		if strings.EqualFold(parent, "secrets") || strings.EqualFold(parent, "credentials") {
			return secrets.Text
		}
		rest = after
	}
	var words [maxWords]string // the last word first
	n := 0
	for end := len(name); end > 0 && n < maxWords; {
		begin := wordStart(name, end)
		word := name[begin:end]
		end = begin
		word = strings.TrimRight(word, "0123456789_-./: []'\"") // db-password-2: the number is no word
		if word != "" {
			words[n] = strings.ToLower(word)
			n++
		}
	}
	w := words[:]
	if n > 1 && asText[w[0]] { // api_key_value
		w = w[1:]
	}
	// A "token" that the table has only as a bare word goes on to ending, for a look at the word before: models have many tokens (pad_token).
	if looks, ok := known(w); ok && (w[0] != "token" || looks != secrets.Long) {
		return looks
	}
	return ending(name, w[0], w[1])
}

// known looks the last words of a name up in the table of secrets: words has the last word first. The match of the most words decides: "access key" before
// "key".
func known(words []string) (looks secrets.Looks, ok bool) {
	var joined [maxName]byte // filled from its end, as the words come from the last on
	at := len(joined)
	for _, w := range words {
		if w == "" || len(w) > at {
			break
		}
		at -= len(w)
		copy(joined[at:], w)
		if found, has := named[string(joined[at:])]; has {
			looks, ok = found, true
		}
	}
	return looks, ok
}

// named are the names of the table of secrets, with their words joined.
var named = func() map[string]secrets.Looks {
	out := make(map[string]secrets.Looks)
	for _, k := range secrets.Kinds() {
		for _, n := range k.Names {
			out[strings.ReplaceAll(n, " ", "")] = k.Looks
		}
	}
	return out
}()

// ending classifies a name by the end of its last word, where the table does not have the words: mytoken, MYCORP_KEY. before is the word before the last one.
// Words that models and training use for other things (pad_token, cache_key, forward_pass) are no secrets. Behind an end such as password or 密码 any value is
// secret. Nothing: the last word has none of the ends.
func ending(name, last, before string) secrets.Looks {
	for _, end := range [...]string{
		"key", "token", "pass", "pwd", "secret", "password", "passwd", "passphrase", "密码", "密钥", "秘钥", "私钥", "口令", "令牌",
	} {
		stem, ok := strings.CutSuffix(last, end)
		if !ok {
			continue
		}
		if stem == "" {
			stem = before
		}
		switch end {
		case "key":
			return ofNoService(name, stem, keysOfModels, secrets.Password, secrets.Random)
		case "token":
			if stem == "" {
				return secrets.Long
			}
			return ofNoService(name, stem, tokensOfModels, secrets.Password, secrets.Long)
		case "pass":
			if stem == "" {
				return secrets.Long
			}
			return ofNoService(name, stem, passesOfModels, secrets.Phrase, secrets.Long)
		case "pwd":
			return secrets.Phrase
		case "secret":
			return secrets.Text
		}
		return secrets.Anything
	}
	return secrets.Nothing
}

// ofNoService classifies a name such as MYCORP_KEY, of a service that the table does not have. Nothing is secret without a word before the "key" or "token", or
// with one of models, the words for other things. A value of an environment variable need only look like env, any other value like other, which is stricter.
func ofNoService(name, before string, models map[string]bool, env, other secrets.Looks) secrets.Looks {
	switch {
	case before == "" || models[before]:
		return secrets.Nothing
	case variable(name):
		return env
	}
	return other
}

// variable says whether a name is an environment variable's: capitals with an underscore, such as MYCORP_KEY.
func variable(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.IndexByte(name, '_') > 0 && name == strings.ToUpper(name)
}

// wordStart is the start of the word that ends at name[end-1]. Of "HTTPApiKey" the words are HTTP, Api and Key.
func wordStart(name string, end int) int {
	i := end - 1
	for i > 0 {
		c, before := name[i], name[i-1]
		switch {
		case !ascii.IsLetter(before) && ascii.IsLetter(c): // api_key
			return i
		case upper(c) && lower(before): // apiKey
			return i
		case upper(c) && upper(before) && i+1 < end && lower(name[i+1]): // HTTPApi: the last of the capitals begins the next word
			return i
		}
		i--
	}
	return 0
}

// A byte below the first letter wraps to a large number: one comparison is enough.
func upper(c byte) bool { return c-'A' < 26 }
func lower(c byte) bool { return c-'a' < 26 }

// set makes a set of words between blanks.
func set(words string) map[string]bool {
	out := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

var (
	// asText may follow the significant word.
	asText = set("value text str plain raw header data")
	// tokensOfModels stand before "token" in the names of models and of their data.
	tokensOfModels = set("eos bos pad padding unk unknown sep cls mask image img video audio speech vision visual special next per last first prev " +
		"previous current cur num max min avg mean total sum start stop end begin new add additional prompt generated gen output input " +
		"in out single extra decoder encoder think thinking tool prefix suffix middle fill fim sot eot eod eom boi eoi placeholder " +
		"forced suppress modality text system assistant user kv draft accepted each every one drop target source loss sampled sub word " +
		"un de re pre multi")
	// keysOfModels stand before "key" in the names of models, of their data, and of tables; public keys are no secrets.
	keysOfModels = set("public pub attention attn cache kv value values query q k v head num max min primary foreign composite sort group partition " +
		"metric pad dict hash unique row col column join lookup random rng prng jax object bucket path input output label target " +
		"feature image video audio text data dataset train eval test val config index state param parameter weight layer model map " +
		"json batch sample prompt answer question response reward item field record event trace span message topic routing host known " +
		"authorized fingerprint gpg pgp hot short function mon tur don hoc joc whis mur jac press any arrow enter esc up down left " +
		"right the this that each every same other first last next prev new old same by per dedup idempotency request plot x y z step " +
		"run experiment env environment search filter tensor storage meta metadata checkpoint ckpt module name type class task")
	// passesOfModels stand before "pass": of models, of compilers, of tests, and parts of words.
	passesOfModels = set("forward backward fwd bwd first second third last next prev single one two multi num max min total this each every full per " +
		"train training eval test tests val data prefill decode encoder decoder inference optimizer graph fusion lowering rewrite " +
		"optimization compile compiler inductor fx jit warmup rpc by com sur tres encom over under low high band all no")
)
