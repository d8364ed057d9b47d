#!/usr/bin/env bash
# The kits of clients/ and the orders suite in each of their languages, one language after the other, on the momus that is named.
# Says of each how long it took, and what was not run for want of its tools; a line "N passed, N failed" closes it.
set -uo pipefail
cd "$(dirname "$0")/../clients"
export MOMUS_COMMAND=$1
passed=0 failed=0
python3 ../tools/doc_code.py || exit 1

language() { # name, tools, command
  for tool in $2; do
    if ! command -v "$tool" >/dev/null; then
      echo "NOT RUN: the kit for $1, because $tool is not installed here: make test-clients" | tee -a "${NOT_RUN_FILE:-/dev/null}"
      return
    fi
  done
  local before=$SECONDS
  if bash -ec "$3"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: the kit for $1"; fi
  echo "the kit for $1 took $((SECONDS - before)) s"
}

language Go go "cd go && go test -count=1 ./... && cd orders && go test -count=1 ./..."
language "Go's other clients" "go gcc" "cd go/libraries && go test -count=1 ./..."
language Node "node npm" "
  cd node && npm ci --no-audit --no-fund --silent && npm test --silent && npm run --silent build
  cd orders && npm ci --no-audit --no-fund --silent && npm test --silent && npm run --silent documents"
language "the JVM" "java mvn" "
  cd junit && mvn -B -q install && mvn -B -q -Pjunit6 test && mvn -B -q -f orders/pom.xml test"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
