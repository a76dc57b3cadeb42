# What the proofs of all clouds share. Sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # the script of the cloud sets HERE, CLOUD and the titles of steps

DRY=""
KEEP=""
STEP=0
name="prove-$(date -u +%m%d%H%M%S)-$RANDOM"
work=""
machine=""
applied=""
created=""

usage() {
  cat <<TEXT
Usage: $0 [--dry-run] [--keep] OPTIONS

Proves in a real account what no test can prove without one. It creates an app, an install and a
Stack with unique names, and removes them at the end, also after a failure.

  --dry-run  print every command and run none
  --keep     leave everything in place at the end
$(describe_options)

EXCLAVE_URL and EXCLAVE_TOKEN name a control plane whose Runner API machines in the account reach.
TEXT
}

read_options() {
  while [ $# -gt 0 ]; do
    case "$1" in
      --dry-run) DRY=1 ;;
      --keep) KEEP=1 ;;
      -h | --help)
        usage
        exit 0
        ;;
      *)
        if [ $# -lt 2 ] || ! take_option "$1" "$2"; then refuse; fi
        shift
        ;;
    esac
    shift
  done
}

refuse() {
  usage >&2
  exit 2
}

# Refuse to begin without a value that only a dry run can do without.
require() {
  [ -n "$DRY" ] || [ -n "$1" ] || refuse
}

need() {
  for program in "$@"; do
    [ -n "$DRY" ] || command -v "$program" >/dev/null || die "$program is missing"
  done
}

die() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# Say what the next commands prove.
prove() {
  STEP=$((STEP + 1))
  printf '\n== %d. Proves: %s\n' "$STEP" "$*"
}

# Print a command, and run it.
run() {
  printf '+ %s\n' "$(printf '%q ' "$@")"
  [ -n "$DRY" ] || "$@"
}

# Print a command, and keep what it prints in a file of the work folder.
run_into() {
  local file="$work/$1"
  shift
  printf '+ %s> %s\n' "$(printf '%q ' "$@")" "$file"
  [ -n "$DRY" ] || "$@" >"$file"
}

# Paste the commands of a step of the customer's page, as they are.
paste() {
  local commands line
  printf 'The page: %s\n' "$1"
  if [ -n "$DRY" ] && [ ! -s "$work/INSTRUCTIONS.md" ]; then return; fi
  commands="$(read_step "$1")"
  [ -n "$commands" ] || die "the page has no step \"$1\" with commands"
  while IFS= read -r line; do printf '+ %s\n' "$line"; done <<<"$commands"
  [ -n "$DRY" ] || (cd "$work" && bash -euo pipefail -c "$commands") || die "$1"
}

# Print the commands below a heading of the page; a login needs a person, who did it before.
read_step() {
  STEP_TITLE="$1" awk '
    /^## / { here = (substr($0, 4) == ENVIRON["STEP_TITLE"]) }
    /^```/ { code = !code; next }
    here && code
  ' "$work/INSTRUCTIONS.md" | grep -v 'application-default login' || true
}

# Wait until a command prints a text, and say how long that took.
wait_for() {
  printf 'Wait until "%s" prints "%s", at most %d s\n' "${*:3}" "$1" "$2"
  wait_until is_same "$@"
}

# Wait until a command prints another text than before.
wait_for_other() {
  printf 'Wait until "%s" prints something else, at most %d s\n' "${*:3}" "$2"
  wait_until is_other "$@"
}

is_same() { [ "$1" = "$2" ]; }
is_other() { [ -n "$1" ] && [ "$1" != "$2" ]; }

wait_until() {
  local comparison="$1" text="$2" limit="$3" began=$SECONDS found=""
  shift 3
  [ -z "$DRY" ] || return 0
  found="$("$@")"
  until "$comparison" "$found" "$text"; do
    [ $((SECONDS - began)) -lt "$limit" ] || die "after $limit s it is still \"$found\""
    sleep 2
    found="$("$@")"
  done
  printf 'TOOK %d s\n' $((SECONDS - began))
}

# Print a part of a JSON document: read_json FILE 'items.0.state'
read_json() {
  python3 -c '
import functools, json, sys
pick = lambda data, key: data[int(key)] if isinstance(data, list) else data[key]
print(functools.reduce(pick, sys.argv[2].split("."), json.load(open(sys.argv[1]))))
' "$1" "$2"
}

read_stack_state() {
  exclave installs stack-versions "$name" --json >"$work/versions.json"
  read_json "$work/versions.json" items.0.state
}

read_machine() {
  exclave installs get "$name" --json >"$work/shown.json"
  read_json "$work/shown.json" cloud_account.machine
}

# Keep which machine runs, to know when another one does.
note_machine() {
  machine=""
  [ -n "$DRY" ] || machine="$(read_machine)"
}

read_workflow_state() {
  exclave workflows get "$1" --json >"$work/workflow.json"
  read_json "$work/workflow.json" state
}

# Print the id in a document of the work folder; in a dry run there is none.
find_id() {
  if [ -n "$DRY" ]; then printf 'ID'; else read_json "$work/$1" "$2"; fi
}

begin() {
  need exclave python3 curl awk
  work="$(mktemp -d)"
  trap finish EXIT
  cp -R "$HERE/apps/$CLOUD" "$work/$name"
  [ -z "$DRY" ] || exclave apps stack "$work/$name" --out "$work/preview" >/dev/null 2>&1 || true
  [ ! -f "$work/preview/INSTRUCTIONS.md" ] || cp "$work/preview/INSTRUCTIONS.md" "$work/"
}

finish() {
  local code=$?
  set +e
  if [ -n "$KEEP" ]; then
    printf '\nKept: install %s, files in %s\n' "$name" "$work"
    exit "$code"
  fi
  [ -z "$applied" ] || { printf '\nRemoving what is left\n' && paste "$REMOVE"; }
  [ -z "$created" ] || run exclave installs delete "$name" --forget "end of a proof" --yes
  rm -rf "$work"
  [ "$code" -ne 0 ] || printf '\nAll %d proofs are done.\n' "$STEP"
  exit "$code"
}

# The life of an install, which is the same in every cloud.
prove_creation() {
  prove "the control plane knows us, and accepts the app"
  run exclave auth whoami
  run exclave apps create "$name"
  run exclave apps sync "$work/$name" --wait

  prove "an install is made for this account, with a link for the customer"
  run_into install.json exclave installs create "$name" --name "$name" --approve-all --json "$@"
  created=1
  run_into stack.json exclave installs stack "$name" --json
  run_into INSTRUCTIONS.new curl -fsS "$(find_id stack.json page)latest/INSTRUCTIONS.md"
  [ -n "$DRY" ] || mv "$work/INSTRUCTIONS.new" "$work/INSTRUCTIONS.md"
  # The page of a preview has no address to fetch from.
  if [ -n "$DRY" ]; then printf 'The page: %s\n' "$FETCH"; else paste "$FETCH"; fi

  prove "the cloud accepts the whole Stack: quotas, zones, image, names, roles"
  applied=1
  paste "$CREATE"

  prove "the machine boots, reads the document, fetches the program and enrols by attestation"
  wait_for active 900 read_stack_state

  prove "a job takes its role on, and the provider of the cloud works with it"
  run exclave workflows watch "$(find_id install.json workflow_id)"
}

prove_stop() {
  note_machine
  prove "a stop ends a running job, every right and the machine; the times are printed"
  run_into hold.json exclave actions run "$name" hold --json
  wait_for running 300 read_workflow_state "$(find_id hold.json id)"
  paste "Stop everything"
  wait_for cancelled 120 read_workflow_state "$(find_id hold.json id)"
  wait_for disabled 120 read_stack_state
  wait_for "" 300 list_machines
  paste "Verify that it is stopped"

  prove "a start brings a machine that enrols without a person"
  paste "Start again"
  wait_for_other "$machine" 900 read_machine
  wait_for active 900 read_stack_state
}

prove_removal() {
  prove "everything can be removed, and nothing is left but what the page names"
  run exclave installs deprovision "$name" --approve-all --yes --wait
  paste "$REMOVE"
  applied=""
  paste "Verify that nothing is left"
  run exclave installs delete "$name" --yes
  created=""
}
