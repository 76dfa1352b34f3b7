package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// maxNesting is how deep a document may nest.
const maxNesting = 1000

// oneNameOnce checks that body is one JSON value and nothing after it, in which
// no object has two names that are the same for same, and nothing is nested
// deeper than maxNesting.
func oneNameOnce(body []byte, same func(string) string) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if err := nextValue(d, same, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the document")
	}
	return nil
}

// foldedName makes names equal that Go's decoder takes for the same field.
func foldedName(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// exactName makes only equal names equal, as in JavaScript.
func exactName(name string) string { return name }

func nextValue(d *json.Decoder, same func(string) string, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	if depth == maxNesting {
		return errors.New("it is nested too deep")
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
			key := same(name.(string)) // a name is always a string
			if seen[key] {
				return errors.New("a name is there twice")
			}
			seen[key] = true
		}
		if err := nextValue(d, same, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
