package main

import (
	"fmt"
	"net/http"
)

// shopHost is the address at which the sessions see the shop. They reach it through a proxy,
// which is the shop's server, so no name server has to know it.
const shopHost = "http://shop.example"

const shopPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>%s</title>
<style>
body { margin: 0; font: 16px/1.5 sans-serif; color: #24292f; background: #faf7f2; }
header { padding: 18px 40px; background: #20473c; color: #fff; font-size: 20px; font-weight: 700; display: flex; justify-content: space-between; }
header span { font-size: 15px; font-weight: 400; }
main { max-width: 760px; margin: 40px auto; padding: 0 40px; }
h1 { font-size: 30px; }
table { width: 100%%; border-collapse: collapse; background: #fff; border: 1px solid #e2dccf; }
td { padding: 12px 18px; border-bottom: 1px solid #e2dccf; }
td:last-child { text-align: right; }
</style>
<header>Shop Example <span>%s</span></header><main>%s</main></html>`

// shop returns the handler of a small shop. /welcome logs alice in.
func shop() http.Handler {
	mux := http.NewServeMux()
	show := func(w http.ResponseWriter, title, who, content string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, shopPage, title, who, content) // it fails only if the browser has disconnected
	}
	mux.HandleFunc("GET /welcome", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session_id", Value: "9f2c61e07b5d4a38", Path: "/", MaxAge: 30 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session_id"); err != nil {
			show(w, "Log in", "not logged in", "<h1>Please log in</h1><p>Your orders are shown here.</p>")
			return
		}
		show(w, "Your orders", "Alice · log out", `<h1>Your orders</h1><table><tr><td>Coffee beans, 1 kg<td>on its way<td>18.00
<tr><td>Notebook, squared<td>delivered<td>4.50<tr><td>Desk lamp<td>delivered<td>39.00</table>
<script>localStorage.setItem("currency", "EUR"); localStorage.setItem("seen", "3")</script>`)
	})
	mux.HandleFunc("GET /offers", func(w http.ResponseWriter, _ *http.Request) {
		show(w, "Offers", "Offers of today", `<h1>Offers of today</h1><table><tr><td>Tea pot<td>22.00<tr><td>Reading chair<td>180.00<tr><td>Wool blanket<td>64.00</table>`)
	})
	return mux
}
