package main

import (
	"fmt"

	"github.com/stasisd/stasis/e2e/rig"
)

// client is the process of the client libraries, e2e/clients/typing.mjs.
type client struct{ *rig.Node }

type object map[string]any

func startClient(folder string) (*client, error) {
	n, err := rig.StartNode(folder, "typing.mjs")
	if err != nil {
		return nil, err
	}
	return &client{n}, nil
}

// text is the text that is typed into each field.
const text = "the quick brown fox"

// fieldsPerBrowser is how many fields are tried in one browser.
const fieldsPerBrowser = 3

// typeInto types into three fields of a browser: in the first tab's page, in a new tab's
// page, and in another site's page in that tab. It returns how many are empty or short.
func (c *client) typeInto(tool, endpoint string, site *site) (lost int, err error) {
	var got struct{ Values []string }
	err = c.Do(object{"do": "type", "tool": tool, "endpoint": endpoint, "text": text, "pages": []object{
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
