package view

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for command, ok := range map[string]bool{
		`{"type":"drawn","frame":3}`: true,
		`{"type":"mouse","event":"down","x":1,"y":2,"button":"left","buttons":1,"clicks":2}`: true,
		`{"type":"wheel","x":1,"y":2,"dx":0,"dy":-120}`:                                      true,
		`{"type":"key","event":"up","key":"é","code":"KeyE","key_code":69}`:                  true,
		`{"type":"text","text":"日本 😀"}`:                                                      true,
		`{"type":"compose","text":""}`:                                                       true,
		`{"type":"navigate","url":"https://a.example/"}`:                                     true,
		`{"type":"mouse","event":"drag"}`:                                                    false,
		`{"type":"mouse","event":"down","button":"sixth"}`:                                   false,
		`{"type":"mouse","event":"move","x":1e300}`:                                          false,
		`{"type":"key","event":"press"}`:                                                     false,
		`{"type":"key","event":"down","key":"` + strings.Repeat("k", maxName+1) + `"}`:       false,
		`{"type":"text","text":"` + strings.Repeat("t", maxText+1) + `"}`:                    false,
		`{"type":"Page.navigate","url":"https://a.example/"}`:                                false,
		`{}`: false,
	} {
		var c Command
		if err := json.Unmarshal([]byte(command), &c); err != nil {
			t.Fatal(err)
		}
		if err := c.check(); (err == nil) != ok {
			t.Errorf("%.100s: %v", command, err)
		}
	}
}
