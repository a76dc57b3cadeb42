#!/usr/bin/env bash
# Proves in a real Google Cloud project what no test can prove without one.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
CLOUD=gcp
FETCH="Fetch the module" CREATE="Apply it with Terraform" REMOVE="Remove the Stack"
project="" region=europe-west1 manager=no
# Terraform would wait for a person to type `yes`.
export TF_CLI_ARGS_apply=-auto-approve TF_CLI_ARGS_destroy=-auto-approve
# shellcheck source=deploy/prove/lib.sh
. "$HERE/lib.sh"

describe_options() {
  printf '  --project ID     the project; gcloud has to be signed in to it, also for\n'
  printf '                   application-default credentials\n'
  printf '  --region REGION  the region; default: %s\n' "$region"
  printf '  --manager yes    apply by Infrastructure Manager, and stop nothing\n'
}

take_option() {
  case "$1" in
    --project) project="$2" ;;
    --region) region="$2" ;;
    --manager)
      manager="$2"
      CREATE="Or apply it with Infrastructure Manager"
      REMOVE="Or remove it with Infrastructure Manager"
      ;;
    *) return 1 ;;
  esac
}

list_machines() {
  gcloud compute instances list --project "$project" --format "value(${1:-name})" \
    --filter "labels.exclave_install=$(find_id install.json id)"
}

delete_machine() {
  local link=LINK
  [ -n "$DRY" ] || link="$(list_machines selfLink)"
  run gcloud compute instances delete "$link" --project "${project:-PROJECT}" --quiet
}

read_options "$@"
require "$project"
need gcloud terraform unzip
begin

prove "gcloud is signed in, and billing and APIs allow machines"
run gcloud projects describe "${project:-PROJECT}" --format 'value(projectId)'
run gcloud services list --project "${project:-PROJECT}" --enabled \
  --filter config.name=compute.googleapis.com --format 'value(config.name)'

prove_creation --region "$region" --account "${project:-PROJECT}"

# Disabled accounts have to refuse tokens that were issued before.
[ "$manager" = yes ] || prove_stop

prove "a machine that is lost is replaced by one that enrols without a person"
note_machine
delete_machine
wait_for_other "$machine" 900 read_machine

prove_removal
