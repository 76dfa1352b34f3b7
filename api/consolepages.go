package api

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/api/console"
)

// consoleRoute stands for all pages of the console in the log.
const consoleRoute = console.Root + "/"

// newConsole makes the web console. It calls the API as a client does, through the router
// and its middleware, but within the process.
func (s *Server) newConsole(o Options, urls origins) *console.Console {
	base := ""
	if o.PublicURL != nil {
		base = o.PublicURL.EscapedPath()
	}
	return console.New(console.Options{
		API:    http.HandlerFunc(s.dispatch),
		Base:   base,
		Origin: func(r *http.Request) url.URL { return urls.of(r).base },
		Now:    o.Now,
	})
}

// withConsole gives the console's pages to people. They are no routes of the API.
func withConsole(pages *console.Console) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if !console.Serves(c.Request()) {
				return next(c)
			}
			c.SetPath(consoleRoute)
			pages.ServeHTTP(c.Response(), c.Request())
			return nil
		}
	}
}
