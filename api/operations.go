package api

import (
	"net/http"

	stasis "github.com/stasisd/stasis"
)

// health tells that the daemon answers; ready, that it can take sessions.
func (s *Server) health(c *call) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) ready(c *call) error {
	if err := s.service.Ready(c.Request().Context()); err != nil {
		return err
	}
	return s.health(c)
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
