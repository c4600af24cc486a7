package ncclras

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// scanner reads JSON value by value, in bounded memory. encoding/json cannot: NCCL leaves out commas, so commas count as white space here.
type scanner struct {
	in    *bufio.Reader
	limit *io.LimitedReader
	token []byte // text of a string (without the quotes), number or literal; empty for other kinds
	kind  byte   // of the token: {}[]:, '"' for a string, '0' for a number or literal
	back  bool   // the token was not taken: next is to return the same again
	depth int    // open objects and arrays
}

const (
	maxToken = 4096
	maxDepth = 16
)

var (
	errDepth   = errors.New("it is nested too deep")
	errToken   = fmt.Errorf("a text of more than %d bytes", maxToken)
	errUnended = errors.New("a text does not end") // a control character, such as the end of a line, before the closing quote
)

// newScanner makes a scanner that reads at most most bytes.
func newScanner(in io.Reader, most int64) scanner {
	limit := &io.LimitedReader{R: in, N: most}
	return scanner{in: bufio.NewReaderSize(limit, 64<<10), limit: limit}
}

// next reads a token into kind and token. White space and commas are passed over. At the end of the input the error is io.EOF.
func (s *scanner) next() error {
	if s.back {
		s.back = false
		return nil
	}
	s.token = s.token[:0] // quoted and bare append to the token
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		switch b {
		case ' ', '\n', '\r', '\t', ',':
			continue
		case '{', '}', '[', ']', ':':
			s.kind = b
			return nil
		case '"':
			s.kind = b
			return s.quoted()
		}
		s.kind = '0'
		return s.bare(b)
	}
}

// quoted reads a string from behind its opening quote to its closing quote, and appends the text between, with escapes replaced, to the empty token. Errors: of
// the input, errToken for more than maxToken bytes, errUnended for a control character, or of an invalid escape.
func (s *scanner) quoted() error {
	escaped := false
	for {
		b, err := s.in.ReadByte()
		switch {
		case err != nil:
			return err
		case b == '"':
			if !escaped {
				return nil
			}
			return s.unescape()
		case len(s.token) >= maxToken:
			return errToken
		case b < ' ': // JSON escapes control characters in texts, so the closing quote is missing
			return errUnended
		}
		s.token = append(s.token, b)
		if b == '\\' {
			escaped = true
			b, err = s.in.ReadByte() // the escaped byte, which may be a quote
			if err != nil {
				return err
			}
			s.token = append(s.token, b)
		}
	}
}

// unescape replaces the escapes in the token. NCCL writes no escapes, so encoding/json is fast enough.
func (s *scanner) unescape() error {
	var text string
	if err := json.Unmarshal([]byte(`"`+string(s.token)+`"`), &text); err != nil {
		return err
	}
	s.token = append(s.token[:0], text...)
	return nil
}

// bare reads a number or a literal, whose first byte is b, and appends its text to the empty token. The byte behind stays to be read.
func (s *scanner) bare(b byte) error {
	for {
		if b < ' ' || b > '~' || len(s.token) >= maxToken {
			return fmt.Errorf("%.20q is no value", append(s.token, b))
		}
		s.token = append(s.token, b)
		peeked, err := s.in.Peek(1)
		if err != nil {
			return err // a document ends with a brace
		}
		switch b = peeked[0]; b {
		case ' ', '\n', '\r', '\t', ',', '{', '}', '[', ']', ':', '"':
			return nil
		}
		_, _ = s.in.Discard(1) // of the peeked byte
	}
}

// object reads an object: for each member it calls member with the name, which must be copied to be kept, and member reads the value.
func (s *scanner) object(member func(name []byte) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	var name []byte
	for {
		if err := s.next(); err != nil {
			return err
		}
		if s.kind == '}' {
			s.depth--
			return nil
		}
		if s.kind != '"' {
			return s.unexpected("a name")
		}
		name = append(name[:0], s.token...)
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// array reads an array: element is called for each element, and reads it.
func (s *scanner) array(element func() error) error {
	if err := s.open('['); err != nil {
		return err
	}
	for {
		if err := s.next(); err != nil {
			return err
		}
		if s.kind == ']' {
			s.depth--
			return nil
		}
		s.back = true // the token is the element's first
		if err := element(); err != nil {
			return err
		}
	}
}

// open reads the first brace or bracket of an object or array.
func (s *scanner) open(kind byte) error {
	if err := s.expect(kind); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return errDepth
	}
	return nil
}

// expect reads a token, and fails if it is not of the kind.
func (s *scanner) expect(kind byte) error {
	if err := s.next(); err != nil {
		return err
	}
	if s.kind != kind {
		return s.unexpected(strconv.QuoteRune(rune(kind)))
	}
	return nil
}

// unexpected is the error about the token, with what should stand in its place.
func (s *scanner) unexpected(want string) error {
	got := string(s.kind)
	if s.kind == '"' || s.kind == '0' {
		got = string(s.token[:min(len(s.token), 20)])
	}
	return fmt.Errorf("%s in place of %s", strconv.QuoteToASCII(got), want)
}

// raw reads a string, whose bytes are overwritten by the next token.
func (s *scanner) raw() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	return s.token, nil
}

func (s *scanner) text() (string, error) {
	text, err := s.raw()
	return string(text), err
}

func (s *scanner) bareWord() (string, error) {
	if err := s.expect('0'); err != nil {
		return "", err
	}
	return string(s.token), nil
}

func (s *scanner) integer() (int64, error) {
	word, err := s.bareWord()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(word, 10, 64)
}

func (s *scanner) natural() (uint64, error) {
	word, err := s.bareWord()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(word, 10, 64)
}

// number reads a finite number.
func (s *scanner) number() (float64, error) {
	word, err := s.bareWord()
	if err != nil {
		return 0, err
	}
	var n float64
	return n, json.Unmarshal([]byte(word), &n)
}

func (s *scanner) boolean() (bool, error) {
	word, err := s.bareWord()
	if err == nil && word != "true" && word != "false" {
		err = s.unexpected("true or false")
	}
	return word == "true", err
}

// skip passes over a value, with all values inside.
func (s *scanner) skip() error {
	if err := s.next(); err != nil {
		return err
	}
	switch s.kind {
	case '"', '0':
		return nil
	case '{':
		s.back = true
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		s.back = true
		return s.array(s.skip)
	}
	return s.unexpected("a value")
}
