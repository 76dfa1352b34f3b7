package api

import (
	"net/http"

	"github.com/stasisd/stasis/fault"
)

// statusOf is the one table from error codes to HTTP statuses. A code that is not in the
// list is a bug and gets 500.
func statusOf(code fault.Code) int {
	switch code {
	case fault.InvalidRequest:
		return http.StatusBadRequest
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden, fault.ScopeReserved:
		return http.StatusForbidden
	case fault.NotFound, fault.SessionNotFound, fault.SnapshotNotFound, fault.UserNotFound,
		fault.DefaultNotFound, fault.KeyNotFound, fault.FileNotFound, fault.ExtensionNotFound, fault.RunNotFound, fault.NoteNotFound, fault.LinkNotFound, fault.NodeNotFound:
		return http.StatusNotFound
	case fault.MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case fault.NoSnapshot, fault.SessionExists, fault.SessionEnding, fault.SessionNotRunning,
		fault.EnvironmentInUse, fault.VersionConflict, fault.SnapshotInUse, fault.SnapshotExists, fault.ExtensionInUse, fault.NodeInUse, fault.NoLoginCheck, fault.RequestInProgress:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.UnknownField, fault.InvalidField, fault.Unsupported, fault.UserMismatch, fault.InvalidExtension, fault.IdempotencyReused,
		fault.InvalidImport:
		return http.StatusUnprocessableEntity
	case fault.TooManySessions, fault.TooManyImports, fault.TooManyClients, fault.TooManyViewers, fault.TooManyLinks, fault.TooManyRequests, fault.TooManyAttempts, fault.QuotaExceeded:
		return http.StatusTooManyRequests
	case fault.BrowserFailed:
		return http.StatusBadGateway
	case fault.ShuttingDown, fault.CatalogueUnavailable, fault.NodeLost, fault.NodeUnavailable:
		return http.StatusServiceUnavailable
	case fault.Timeout:
		return http.StatusGatewayTimeout
	case fault.StoreFull:
		return http.StatusInsufficientStorage
	case fault.Internal, fault.SaveFailed, fault.ArchiveDamaged, fault.IdentityMissing, fault.StoreFailed,
		fault.ChromeMissing, fault.SandboxFailed, fault.Config, fault.DataDirInUse:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}
