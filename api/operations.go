package api

import (
	"net/http"

	stasis "github.com/stasisd/stasis"
)

// readiness is the answer of a daemon that can take sessions.
type readiness struct {
	Status   string   `json:"status"`
	Landlock landlock `json:"landlock"`
}

// landlock says whether Chromes run behind Landlock, and which version of it the
// kernel has: 0 where they do not.
type landlock struct {
	Enforced bool `json:"enforced"`
	ABI      int  `json:"abi"`
}

// health tells that the daemon answers; ready, that it can take sessions.
func (s *Server) health(c *call) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) ready(c *call) error {
	if err := s.service.Ready(c.Request().Context()); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, readiness{Status: "ok", Landlock: landlock{Enforced: s.landlock > 0, ABI: s.landlock}})
}

// scrape tells the metrics, in Prometheus's text format.
func (s *Server) scrape(c *call) error {
	s.metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

// openapi serves the wire's description.
func (s *Server) openapi(c *call) error {
	return c.Blob(http.StatusOK, "application/yaml", stasis.OpenAPI())
}
