package mux

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fields holds the members of a command's parameters. A duplicate name is an error,
// because the table and Chrome might use different values.
type fields map[string]jsontext.Value

func (f *fields) read(params []byte) error {
	*f = fields{}
	if params == nil {
		return nil
	}
	if err := json.Unmarshal(params, f, jsontext.AllowInvalidUTF8(true)); err != nil {
		return errors.New("the parameters must be an object without duplicate names")
	}
	return nil
}

func (f fields) write() []byte {
	b, err := json.Marshal(f, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return []byte("{}") // it was read from JSON, so it is JSON
	}
	return b
}

// get decodes a member into v. It leaves v unchanged if the member is absent.
func (f fields) get(name string, v any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s has the wrong type", name)
	}
	return nil
}

func (f fields) set(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s is malformed", name)
	}
	f[name] = raw
	return nil
}

var errNoTarget = errors.New("No target with given id found") //nolint:staticcheck // Chrome's own words

func visibleTarget(c *call) error {
	var id string
	if err := c.params.get("targetId", &id); err != nil {
		return err
	}
	if id != "" && !c.visible(id) {
		return errNoTarget
	}
	return nil
}

func flatAttach(c *call) error {
	var flat bool
	if err := c.params.get("flatten", &flat); err != nil {
		return err
	}
	if !flat {
		return errors.New("flatten must be true")
	}
	return visibleTarget(c)
}

func flatAutoAttach(c *call) error {
	flat, on := false, true
	if err := errors.Join(c.params.get("flatten", &flat), c.params.get("autoAttach", &on)); err != nil {
		return err
	}
	if on && !flat {
		return errors.New("flatten must be true")
	}
	return nil
}

func plainContext(c *call) error {
	var origins []string
	if err := c.params.get("originsWithUniversalNetworkAccess", &origins); err != nil {
		return err
	}
	if len(origins) > 0 {
		return errors.New("originsWithUniversalNetworkAccess must be empty")
	}
	return nil
}

func tracing(c *call) error {
	var backend string
	if err := c.params.get("tracingBackend", &backend); err != nil {
		return err
	}
	if backend == "system" {
		return errors.New("tracingBackend must be chrome or auto")
	}
	if _, ok := c.params["perfettoConfig"]; ok {
		return errors.New("perfettoConfig must be absent")
	}
	// auto means the system backend if there is one.
	c.changed = true
	return c.params.set("tracingBackend", "chrome")
}

// pageKeys removes the native key code. Without it Chrome gives the key only to the page,
// which sees no difference.
func pageKeys(c *call) error {
	if _, ok := c.params["nativeVirtualKeyCode"]; ok {
		delete(c.params, "nativeVirtualKeyCode")
		c.changed = true
	}
	return nil
}
