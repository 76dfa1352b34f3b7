package api

// The number of items in a page: the default and the maximum.
const defaultPage, largestPage = 100, 1000

// listing has the query parameters of every paged list. A list with filters embeds it.
type listing struct {
	Limit      int64  `json:"limit"`       // items, 1 to largestPage
	StartAfter string `json:"start_after"` // the page begins after this ID; "" for the first page
}

// firstPage returns the parameters of a call that sets none.
func firstPage() listing { return listing{Limit: defaultPage} }

// check returns invalid_field if a parameter is not allowed.
func (l listing) check() error {
	return firstOf(within("limit", l.Limit, 1, largestPage), isID("start_after", l.StartAfter))
}
