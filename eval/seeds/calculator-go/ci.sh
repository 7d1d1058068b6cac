#!/bin/sh
# The checks of this project.
set -eu
test -z "$(gofmt -l .)"
go vet ./...
go test ./...
go build -o "${TMPDIR:-/tmp}/calc" .
test "$("${TMPDIR:-/tmp}/calc" '1+2*3')" = 7
