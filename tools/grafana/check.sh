#!/usr/bin/env bash
# Checks the dashboards by the types of Grafana's own package, @grafana/schema: names, enums, what must be there. Needs node and npm.
set -eu
cd "$(dirname "$0")"
work=../../bin/tools/grafana
mkdir -p "$work"
cp package.json package-lock.json dashboard.ts "$work"
npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --silent
rm -f "$work"/board-*.ts
for file in ../../deploy/grafana/dashboards/*.json; do
  # In a program, and not imported: tsc takes an imported "list" for any text.
  { echo "import type { Board } from './dashboard';" && echo 'export const board: Board =' && cat "$file"; } >"$work/board-$(basename "$file" .json).ts"
done
cd "$work"
node_modules/.bin/tsc --noEmit --strict --skipLibCheck --target es2022 --module nodenext --moduleResolution nodenext board-*.ts
