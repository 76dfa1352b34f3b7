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

// client is the process of the client libraries, e2e/clients/typing.mjs. It does
// one thing at a time.
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

// do has it do one thing, and decodes the answer's value into out, unless that is nil.
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

// text is what is typed into each field.
const text = "the quick brown fox"

// fieldsPerBrowser is how many fields are typed into in one browser.
const fieldsPerBrowser = 3

// typeInto types into the fields of a browser, and gives how many are empty or
// short: of the first tab's page, of a new tab's, and of one of another site there.
func (c *client) typeInto(tool, endpoint string, site *site) (lost int, err error) {
	var got struct{ Values []string }
	err = c.do(object{"do": "type", "tool": tool, "endpoint": endpoint, "text": text, "pages": []object{
		{"url": site.url}, {"url": site.url + "?2", "tab": "new"}, {"url": site.other},
	}}, &got)
	if err == nil && len(got.Values) != fieldsPerBrowser {
		err = fmt.Errorf("%d fields were typed into, not %d", len(got.Values), fieldsPerBrowser)
	}
	for _, v := range got.Values {
		if v != text {
			lost++
		}
	}
	return lost, err
}

func (c *client) close() error { return errors.Join(c.orders.Close(), c.cmd.Wait()) }
