package main

import (
	"context"
	"strings"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// kind is a kind of state: one row of the table. To add one, add a value to
// the list of its like.
//
// What it keeps is told by a reading: text that says what is there, "" when
// nothing is. The reading is taken when the state was made and again after
// coming back, and the kind has survived if both are the same and not "". So a
// reading holds everything that matters about the state and nothing that
// changes by itself, and taking it changes nothing.
type kind struct {
	name  string
	where place
	seed  step // makes the state; nil where the directory to begin with has it
	read  step
}

// environment is what a way keeps at once: the kinds that are made in one browser.
type environment struct {
	kinds []kind
	// bare: its sessions are given nothing: no overrides, passkeys or extension.
	bare bool
}

// environments are all that each way keeps, one after the other.
func environments(apps []application) []environment {
	return []environment{
		{kinds: kinds()},
		{kinds: singleTab(), bare: true},
		{kinds: besideBlankTab(), bare: true},
		{kinds: logins(apps), bare: true},
	}
}

// rows are the kinds of environments: the table's rows, in its order.
func rows(all []environment) []kind {
	var rows []kind
	for _, e := range all {
		rows = append(rows, e.kinds...)
	}
	return rows
}

// place is where a kind is made and read, and so when.
type place int

const (
	inPage  place = iota // in the browser, whatever tabs are open
	inTabs               // in the tabs that are left open; read before anything else is opened
	inFiles              // in the files of the closed profile
)

// step makes or reads state.
type step func(ctx context.Context, at *visit) (string, error)

// visit is where a step acts.
type visit struct {
	*browser
	site *blank.Site
	work *tab   // at a.localhost, with a frame of b.localhost; in a page step
	dir  string // user data directory of a closed Chrome; in a files step

	passkeys bool // the way gives its pages an authenticator
	readings int  // how often everything was read before
}

// kinds are those of the first environment, in the table's order.
func kinds() []kind {
	var all []kind
	for _, some := range [][]kind{cookies(), storage(), database(), workers(), profile(), session(), tabs(), plain()} {
		all = append(all, some...)
	}
	return all
}

// mark is the value that states are told by.
const mark = "kept"

// prelude is what every script has at hand.
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
// db opens a database, as it is or made by upgrade; done waits for a request.
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

// script is a step that runs the body of an async function in the page; it
// returns a string, or nothing.
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

// quoted is a script literal of a text without backquotes.
func quoted(text string) string { return "`" + strings.ReplaceAll(text, "`", "\\`") + "`" }

// elsewhere runs a script in a tab of its own at an address, in front: there
// are questions that pages behind get no answer to.
func elsewhere(ctx context.Context, at *visit, url, body string) (string, error) {
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
