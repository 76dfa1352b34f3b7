package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// client is the process of the client libraries, e2e/clients/typing.mjs. It does one
// order at a time.
type client struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  *bufio.Reader
}

type object map[string]any

func startClient(folder string) (*client, error) {
	c := &client{cmd: exec.Command("node", "typing.mjs")}
	c.cmd.Dir, c.cmd.Stderr = folder, os.Stderr
	var err error
	if c.orders, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// do sends an order and decodes the answer's value into out; nil ignores it.
func (c *client) do(order object, out any) error {
	raw, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := c.orders.Write(append(raw, '\n')); err != nil {
		return err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the client libraries' process ended: %w", err)
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// text is the text that is typed into each field.
const text = "the quick brown fox"

// fieldsPerBrowser is how many fields are tried in one browser.
const fieldsPerBrowser = 3

// typeInto types into three fields of a browser: in the first tab's page, in a new tab's
// page, and in another site's page in that tab. It returns how many are empty or short.
func (c *client) typeInto(tool, endpoint string, site *site) (lost int, err error) {
	var got struct{ Values []string }
	err = c.do(object{"do": "type", "tool": tool, "endpoint": endpoint, "text": text, "pages": []object{
		{"url": site.url}, {"url": site.url + "?2", "tab": "new"}, {"url": site.other},
	}}, &got)
	if err == nil && len(got.Values) != fieldsPerBrowser {
		err = fmt.Errorf("got %d fields, want %d", len(got.Values), fieldsPerBrowser)
	}
	for _, v := range got.Values {
		if v != text {
			lost++
		}
	}
	return lost, err
}

func (c *client) close() error { return errors.Join(c.orders.Close(), c.cmd.Wait()) }
