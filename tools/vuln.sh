#!/usr/bin/env bash
# Fails when our code calls a known vulnerability of a module or of Go. Where the database cannot be reached, it says that nothing was checked, and passes:
# no build needs the network. VULN_DB is another database: the URL of a mirror, or file:///a/directory.
set -eu
cd "$(dirname "$0")/.."
db=${VULN_DB:-https://vuln.go.dev}
govulncheck() { go tool -modfile=tools/go.mod govulncheck -db "$db" "$@"; }

# A look at the modules alone takes seconds, and shows whether the database is there: of one
# that answers nothing it says that its format is not known.
if ! reason=$(govulncheck -scan module 2>&1 >/dev/null) && [[ $reason =~ "fetching vulnerabilities"|"unrecognized vulndb format" ]]; then
  echo "vulnerabilities: NOT CHECKED, no database at $db (${reason##*: }); run 'make vuln' where it can be reached, or set VULN_DB"
  exit 0
fi
govulncheck -tags full "${@:-./...}" # the full build has all that the agent has
