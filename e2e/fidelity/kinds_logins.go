package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/e2e/apps/webapp"
)

// application is a real web application with the scripts that log in to it.
type application struct {
	*webapp.App
	name  string
	start func(dir string) (*webapp.App, error)
	form  string // path of the page with the login form
	ready string // true in a page where the form can be sent
	enter string // script that fills in and sends the form; it may use user and password
	in    string // true in a page that is logged in
	ask   string // script that returns what only the account can read, or any other text
	has   string // what that text contains if the login works
}

// applicationsToTry returns the applications of the table. One keeps its login in
// session cookies, one in localStorage, one in persistent cookies.
func applicationsToTry() []application {
	return []application{
		{name: "DokuWiki", start: webapp.StartDokuWiki, form: "/doku.php?id=start&do=login",
			ready: `!!document.querySelector("#dw__login")`,
			enter: `
				document.querySelector('#dw__login input[name="u"]').value = user;
				document.querySelector('#dw__login input[name="p"]').value = password;
				document.querySelector('#dw__login button[type="submit"]').click();`,
			in:  `document.body.innerText.includes("Members only")`,
			ask: `return (await fetch("/doku.php?id=start&do=export_raw")).text()`,
			has: "You are in."},
		{name: "Node-RED", start: webapp.StartNodeRED, form: "/",
			ready: `document.querySelector("#node-dialog-login-username")?.checkVisibility()`, // the field exists, hidden, before its dialog opens
			enter: `
				document.querySelector("#node-dialog-login-username").value = user;
				document.querySelector("#node-dialog-login-password").value = password;
				document.querySelector("#node-dialog-login-submit").click();`,
			in: `!!document.querySelector("#red-ui-header-button-user") && !document.querySelector("#node-dialog-login-username")`,
			ask: `
				const { access_token } = JSON.parse(localStorage["auth-tokens"] ?? "{}");
				return (await fetch("/settings", { headers: { Authorization: "Bearer " + access_token } })).text()`,
			has: `"username":"grace"`},
		{name: "phpLiteAdmin", start: webapp.StartPHPLiteAdmin, form: "/",
			ready: `!!document.querySelector("#loginBox")`,
			enter: `
				document.querySelector('#loginBox input[name="password"]').value = password;
				document.querySelector('#loginBox input[name="remember"]').checked = true;
				document.querySelector('#loginBox input[type="submit"]').click();`,
			in:  `!document.querySelector("#loginBox") && document.body.innerText.includes("members")`,
			ask: `return (await fetch("/")).text()`,
			has: "members"},
	}
}

// startApplications starts the applications, with their files below a folder. stop ends
// those that run. It is never nil.
func startApplications(scratch string) (all []application, stop func(), err error) {
	stop = func() {
		for _, a := range all {
			a.Close()
		}
	}
	for _, a := range applicationsToTry() {
		dir := filepath.Join(scratch, a.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return all, stop, err
		}
		if a.App, err = a.start(dir); err != nil {
			return all, stop, err
		}
		all = append(all, a)
	}
	return all, stop, nil
}

// logins returns the kinds of an environment that is logged in to each application, in a
// tab that stays open.
func logins(apps []application) []kind {
	var kinds []kind
	for _, a := range apps {
		kinds = append(kinds, kind{name: "logged in to " + a.name, where: inTabs, seed: a.logIn, read: a.loggedIn})
	}
	return kinds
}

func (a application) logIn(ctx context.Context, at *visit) (string, error) {
	t, err := at.open(ctx, a.URL+a.form)
	if err != nil {
		return "", err
	}
	if err := at.activate(ctx, t); err != nil { // a field gets the focus only in front
		return "", err
	}
	if err := t.await(ctx, a.ready); err != nil {
		return "", err
	}
	// Sending the form replaces the page, and the script's result is lost with it.
	_, err = t.run(ctx, "const user = "+strconv.Quote(a.User)+", password = "+strconv.Quote(a.Password)+"; setTimeout(() => {"+a.enter+"})")
	return "", errors.Join(err, t.await(ctx, a.in))
}

// loggedIn requests what only the account can read. It uses the application's tab, or a
// new one if that tab was not restored.
func (a application) loggedIn(ctx context.Context, at *visit) (string, error) {
	t, err := at.find(ctx, a.URL)
	if t == nil && err == nil {
		t, err = at.open(ctx, a.URL+a.form)
	}
	if err != nil {
		return "", err
	}
	if err := t.await(ctx, arrived); err != nil {
		return "", err
	}
	answer, err := t.run(ctx, a.ask)
	if err != nil || !strings.Contains(answer, a.has) {
		return "", err
	}
	return a.has, nil
}
