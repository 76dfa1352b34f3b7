package main

import (
	"context"
	"strings"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// kind is a kind of state: one row of the table. To add a kind, add a value to the list
// of similar kinds.
//
// A read step describes the state as text, "" if there is none. It runs after the state
// was made and again after the restore. The kind has survived if both texts are equal
// and not "". So the text contains everything that matters about the state, and nothing
// that changes without a cause. Reading must not change the state.
type kind struct {
	name  string
	where place
	seed  step // makes the state; nil if the first user data directory has it
	read  step
}

// environment is the kinds that are made and kept together in one browser.
type environment struct {
	kinds []kind
	// bare means that its sessions have no overrides, passkeys or extension.
	bare bool
}

// environments returns all environments. Each method is tried with each of them.
func environments(apps []application) []environment {
	return []environment{
		{kinds: kinds()},
		{kinds: singleTab(), bare: true},
		{kinds: besideBlankTab(), bare: true},
		{kinds: logins(apps), bare: true},
	}
}

// rows returns the kinds of all environments, in the order of the table's rows.
func rows(all []environment) []kind {
	var rows []kind
	for _, e := range all {
		rows = append(rows, e.kinds...)
	}
	return rows
}

// place is where a kind is made and read. It also decides when.
type place int

const (
	inPage  place = iota // in the browser, with any tabs open
	inTabs               // in the tabs that are left open; read before anything else is opened
	inFiles              // in the files of the closed profile
)

// step makes or reads state.
type step func(ctx context.Context, at *visit) (string, error)

// visit is what a step works on.
type visit struct {
	*browser
	site *blank.Site
	work *tab   // for inPage: a tab at a.localhost, with a frame of b.localhost
	dir  string // for inFiles: user data directory of a closed Chrome

	passkeys bool // the method gives its pages an authenticator
	readings int  // how many times everything was read before
}

// kinds returns the kinds of the first environment, in the order of the table.
func kinds() []kind {
	var all []kind
	for _, some := range [][]kind{cookies(), storage(), database(), workers(), profile(), session(), tabs(), plain()} {
		all = append(all, some...)
	}
	return all
}

// mark is the value that steps store and look for.
const mark = "kept"

// prelude defines the functions that every script can use.
const prelude = `
const mark = "` + mark + `";
// frame runs the body of an async function in the page's frame.
const frame = async (body) => {
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve, reject) => {
    port1.onmessage = ({ data }) => ("error" in data ? reject(new Error(data.error)) : resolve(data.value));
  });
  document.querySelector("iframe").contentWindow.postMessage(body, "*", [port2]);
  return answer;
};
// db opens a database, unchanged or made by upgrade; done waits for a request.
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
const db = (name, upgrade, version = 1, factory = indexedDB) => {
  const opening = upgrade ? factory.open(name, version) : factory.open(name);
  opening.onupgradeneeded = () => upgrade ? upgrade(opening.result) : opening.transaction.abort();
  return done(opening);
};
`

// script is a step that runs the body of an async function in the page. The function
// returns a string or nothing.
func script(body string) step {
	return func(ctx context.Context, at *visit) (string, error) { return at.work.run(ctx, body) }
}

// framed is a script that runs in the page's third-party frame.
func framed(body string) step {
	return script("return frame(" + quoted(body) + ")")
}

// run runs the body of an async function in the tab.
func (t *tab) run(ctx context.Context, body string) (string, error) {
	return t.evaluate(ctx, "(async () => {"+prelude+body+"})()")
}

// quoted returns a script literal of a text.
func quoted(text string) string { return "`" + strings.ReplaceAll(text, "`", "\\`") + "`" }

// inNewTab runs a script in a new tab at an address, in front. Some APIs do not answer
// pages in the background.
func inNewTab(ctx context.Context, at *visit, url, body string) (string, error) {
	t, err := at.open(ctx, url)
	if err != nil {
		return "", err
	}
	if err := at.activate(ctx, t); err != nil {
		return "", err
	}
	value, err := t.run(ctx, body)
	if gone := t.shut(ctx); err == nil {
		err = gone
	}
	return value, err
}
