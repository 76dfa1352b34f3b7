package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is the largest nesting depth of a document.
const maxNesting = 1000

var (
	errTwice   = errors.New("a name occurs twice")
	errNested  = errors.New("it is nested too deep")
	errFollows = errors.New("something follows the document")
)

// oneNameOnce checks that body is exactly one JSON value. No object in it may have the
// same name twice, compared as in JavaScript, and nothing may be nested deeper than
// maxNesting.
func oneNameOnce(body []byte) error {
	// Half a surrogate pair is valid in JSON's own grammar.
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return errTwice
		case err != nil:
			return err
		case d.StackDepth() > maxNesting:
			return errNested
		case d.StackDepth() == 0:
			if _, err := d.ReadToken(); err != io.EOF {
				return errFollows
			}
			return nil
		}
	}
}

// oneFoldedNameOnce is oneNameOnce for a small body. In addition, no object may have two
// names that Go's decoder takes for the same field.
func oneFoldedNameOnce(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if err := nextValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errFollows
	}
	return nil
}

// foldedName maps names to the same string if Go's decoder takes them for the same field.
func foldedName(name string) string { return strings.ToLower(strings.ToUpper(name)) }

func nextValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	if depth == maxNesting {
		return errNested
	}
	var seen map[string]bool
	if token == json.Delim('{') {
		seen = map[string]bool{}
	}
	for d.More() {
		if seen != nil {
			name, err := d.Token()
			if err != nil {
				return err
			}
			key := foldedName(name.(string)) // a name is always a string
			if seen[key] {
				return errTwice
			}
			seen[key] = true
		}
		if err := nextValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
