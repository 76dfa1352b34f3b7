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
	errDuplicateName = errors.New("a name occurs twice")
	errTooNested     = errors.New("it is nested too deep")
	errTrailingData  = errors.New("something follows the document")
)

// checkUniqueNames checks that body is exactly one JSON value. No object in it may have the
// same name twice, compared as in JavaScript, and nothing may be nested deeper than
// maxNesting.
func checkUniqueNames(body []byte) error {
	// Half a surrogate pair is valid in JSON's own grammar.
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return errDuplicateName
		case err != nil:
			return err
		case d.StackDepth() > maxNesting:
			return errTooNested
		case d.StackDepth() == 0:
			if _, err := d.ReadToken(); err != io.EOF {
				return errTrailingData
			}
			return nil
		}
	}
}

// checkUniqueFoldedNames is checkUniqueNames for a small body. In addition, no object may
// have two names that Go's decoder takes for the same field.
func checkUniqueFoldedNames(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if err := nextValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errTrailingData
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
		return errTooNested
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
				return errDuplicateName
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
