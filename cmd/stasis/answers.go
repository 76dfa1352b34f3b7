//go:build linux

package main

import (
	"context"

	"github.com/stasisd/stasis/api"
	"github.com/stasisd/stasis/profiles"
)

// answers adapts the catalogue's store of answers to [api.Answers]: package api does not
// know the catalogue.
type answers struct{ store profiles.AnswerStore }

// ClaimAnswer implements [api.Answers].
func (a answers) ClaimAnswer(ctx context.Context, claim api.Answer) (known api.Answer, fresh bool, err error) {
	was, fresh, err := a.store.ClaimAnswer(ctx, profiles.Answer(claim))
	return api.Answer(was), fresh, err
}

// FinishAnswer implements [api.Answers].
func (a answers) FinishAnswer(ctx context.Context, done api.Answer) error {
	return a.store.FinishAnswer(ctx, profiles.Answer(done))
}

// DropAnswer implements [api.Answers].
func (a answers) DropAnswer(ctx context.Context, scope, key string) error {
	return a.store.DropAnswer(ctx, scope, key)
}
