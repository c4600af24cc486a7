package redact

import (
	"errors"
	"fmt"
	"regexp"

	"go.opentelemetry.io/collector/config/configopaque"
)

// Config configures the redaction of the logs' texts. Every file receiver has it as `redact:`.
type Config struct {
	// Enabled replaces secrets by [redacted]: values of fields with a secret's name (api_key, hub_token, password) and texts of a well-known shape
	// (docs/reference/redaction.md has the list). Default true.
	Enabled bool `mapstructure:"enabled"`
	// Keys are regular expressions (RE2) of more field names, as the log has them; any value of a matching field is secret. Default: none.
	Keys []string `mapstructure:"keys"`
	// Values are regular expressions (RE2) of more secrets; each is looked for in every text. Default: none.
	Values []string `mapstructure:"values"`
	// HashHosts replaces the names of hosts and IP addresses by a keyed hash. Default false.
	HashHosts bool `mapstructure:"hash_hosts"`
	// HashKey is the secret key of the hash, the same in all collectors of a run. Required with HashHosts: 16 bytes or more.
	HashKey configopaque.String `mapstructure:"hash_key"`
}

// DefaultConfig returns the configuration of a receiver without `redact:`.
func DefaultConfig() Config { return Config{Enabled: true} }

const minHashKey = 16

var (
	errHashKey = fmt.Errorf(
		"'redact::hash_key' must have %d bytes or more with 'redact::hash_hosts': a secret that all collectors share, such as ${env:TRAINBRIDGE_HASH_KEY}",
		minHashKey,
	)
	errDisabled = errors.New("'redact::keys' and 'redact::values' do nothing with 'redact::enabled: false': take them out, or enable it")
)

// Validate returns an error for each wrong key of the configuration, with the key's name and advice. The collector calls Validate at its start.
func (c *Config) Validate() error {
	_, keys := compile("keys", c.Keys)
	_, values := compile("values", c.Values)
	errs := []error{keys, values}
	if c.HashHosts && len(c.HashKey) < minHashKey {
		errs = append(errs, errHashKey)
	}
	if !c.Enabled && len(c.Keys)+len(c.Values) > 0 {
		errs = append(errs, errDisabled)
	}
	return errors.Join(errs...)
}

// compile compiles the patterns of the list 'redact::<key>'. The error names each pattern that is wrong; a pattern that matches the empty text is, too.
func compile(key string, patterns []string) ([]*regexp.Regexp, error) {
	var errs []error
	out := make([]*regexp.Regexp, 0, len(patterns))
	for i, p := range patterns {
		re, err := regexp.Compile(p)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("'redact::%s::%d' must be a regular expression (RE2), such as ^my_.*_pin$: %w", key, i, err))
		case re.MatchString(""):
			errs = append(errs, fmt.Errorf("'redact::%s::%d' must not match the empty text, which is in every text: %q", key, i, p))
		default:
			out = append(out, re)
		}
	}
	return out, errors.Join(errs...)
}
