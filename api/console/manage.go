package console

import (
	"net/http"
	"time"
)

type extensionAnswer struct {
	ID        string     `json:"id"`
	UserID    string     `json:"user_id"`
	Name      string     `json:"name"`
	Version   string     `json:"version"`
	SizeBytes int64      `json:"size_bytes"`
	CreatedAt *time.Time `json:"created_at"`
}

func listExtensions(v *visit) error {
	var data struct{ Extensions []extensionAnswer }
	if _, err := v.api.get("/v1/extensions", &data); err != nil {
		return err
	}
	return v.render("extensions", page{Title: "Extensions", Section: "extensions", Data: data.Extensions, Actions: []action{
		{Label: "Use one in a session", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"extensions": ["ID"]}`}},
	}})
}

func uploadExtension(v *visit) error {
	if err := v.api.upload("/v1/extensions"); err != nil {
		return err
	}
	return v.done("The extension is stored.", "extensions")
}

func askDeleteExtension(v *visit) error {
	id := v.r.PathValue("id")
	return v.render("confirm", page{Title: "Delete an extension", Section: "extensions", Data: confirmation{
		Question: "Delete the extension " + id + "?",
		Effect:   "New sessions cannot use it. Snapshots that have it keep their own copy.",
		Action:   v.console.at("extensions", id, "delete"), Button: "Delete", Back: v.console.at("extensions"),
	}})
}

func deleteExtension(v *visit) error {
	if _, err := v.api.send(http.MethodDelete, "/v1/extensions"+joinPath(v.r.PathValue("id")), nil, nil); err != nil {
		return err
	}
	return v.done("The extension is deleted.", "extensions")
}

type keyAnswer struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	UserID    string     `json:"user_id"`
	AllUsers  bool       `json:"all_users"`
	Rights    []string   `json:"rights"`
	CreatedAt *time.Time `json:"created_at"`
	Secret    string     `json:"secret"`
}

// keysPage is what the page of keys shows. Made is a key that was made now.
type keysPage struct {
	Keys []keyAnswer
	Made *keyAnswer
}

func listKeys(v *visit) error { return showKeys(v, nil) }

// showKeys lists the keys. The secret of a new one is shown only in this answer.
func showKeys(v *visit, made *keyAnswer) error {
	data := keysPage{Made: made}
	if _, err := v.api.get("/v1/keys", &data); err != nil {
		return err
	}
	return v.render("keys", page{Title: "Keys", Section: "keys", Data: data, Actions: []action{
		{Label: "Make a key", Call: call{method: http.MethodPost, path: "/v1/keys", body: `{"name": "ci", "user_id": "alice", "rights": ["use"]}`}},
	}})
}

func makeKey(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	body := map[string]any{"name": form.Get("name"), "rights": form["rights"], "all_users": form.Get("all_users") != ""}
	if form.Get("user_id") != "" {
		body["user_id"] = form.Get("user_id")
	}
	var made keyAnswer
	if _, err := v.api.send(http.MethodPost, "/v1/keys", body, &made); err != nil {
		return err
	}
	return showKeys(v, &made)
}

func askDeleteKey(v *visit) error {
	id := v.r.PathValue("id")
	return v.render("confirm", page{Title: "Delete a key", Section: "keys", Data: confirmation{
		Question: "Delete the key " + id + "?",
		Effect:   "Programs that use it are refused at once, and so are people who are signed in with it.",
		Action:   v.console.at("keys", id, "delete"), Button: "Delete", Back: v.console.at("keys"),
	}})
}

func deleteKey(v *visit) error {
	if _, err := v.api.send(http.MethodDelete, "/v1/keys"+joinPath(v.r.PathValue("id")), nil, nil); err != nil {
		return err
	}
	return v.done("The key is deleted.", "keys")
}

type deliveryAnswer struct {
	ID          string     `json:"id"`
	SessionID   string     `json:"session_id"`
	UserID      string     `json:"user_id"`
	URL         string     `json:"url"`
	Event       string     `json:"event"`
	State       string     `json:"state"`
	Attempts    int        `json:"attempts"`
	LastError   string     `json:"last_error"`
	CreatedAt   *time.Time `json:"created_at"`
	LastAttempt *time.Time `json:"last_attempt_at"`
	NextAttempt *time.Time `json:"next_attempt_at"`
}

// deliveriesPage is a page of webhook deliveries.
type deliveriesPage struct {
	State      string // only these; "" is all
	Deliveries []deliveryAnswer
	Next       string
}

func listDeliveries(v *visit) error {
	data := deliveriesPage{State: v.query("state")}
	header, err := v.api.get("/v1/webhooks/deliveries"+queryOf("limit", "50", "state", data.State, "start_after", v.query("after")), &data.Deliveries)
	if err != nil {
		return err
	}
	data.Next = header.Get("X-Next-Token")
	return v.render("webhooks", page{Title: "Webhooks", Section: "webhooks", Data: data, Actions: []action{
		{Label: "Send webhooks of a session", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"webhook_url": "https://hooks.example/stasis"}`}},
	}})
}

func resendDelivery(v *visit) error {
	if _, err := v.api.send(http.MethodPost, "/v1/webhooks/deliveries"+joinPath(v.r.PathValue("id"), "resend"), nil, nil); err != nil {
		return err
	}
	return v.done("The delivery is sent again.", "webhooks")
}
