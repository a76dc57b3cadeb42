#!/usr/bin/env bash
# Proves in a real Azure subscription what no test can prove without one.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
CLOUD=azure
FETCH="Fetch the files" CREATE="Create the stack" REMOVE="Remove the Stack"
subscription="" tenant="" location=westeurope
# shellcheck source=deploy/prove/lib.sh
. "$HERE/lib.sh"

describe_options() {
  printf '  --subscription ID  the subscription; az has to be signed in to it, as an owner\n'
  printf '  --tenant ID        its tenant\n'
  printf '  --location NAME    the location; default: %s\n' "$location"
}

take_option() {
  case "$1" in
    --subscription) subscription="$2" ;;
    --tenant) tenant="$2" ;;
    --location) location="$2" ;;
    *) return 1 ;;
  esac
}

list_scale_sets() {
  az resource list --subscription "$subscription" --output tsv --query '[].id' \
    --tag "exclave-install=$(find_id install.json id)" \
    --resource-type Microsoft.Compute/virtualMachineScaleSets
}

list_machines() {
  local set
  for set in $(list_scale_sets); do
    az vmss list-instances --ids "$set" --query '[].instanceId' --output tsv
  done
}

delete_machine() {
  local set=SCALE_SET
  [ -n "$DRY" ] || set="$(list_scale_sets)"
  run az vmss delete-instances --ids "$set" --instance-ids '*'
  run az vmss scale --ids "$set" --new-capacity 1
}

read_options "$@"
require "$subscription"
require "$tenant"
need az
begin

prove "az is signed in to the right subscription, whose providers are registered"
run az account show --subscription "${subscription:-SUBSCRIPTION}" --query tenantId --output tsv
for provider in Compute Network KeyVault ManagedIdentity Authorization OperationalInsights \
  Insights; do
  run az provider show --subscription "${subscription:-SUBSCRIPTION}" \
    --namespace "Microsoft.$provider" --query registrationState --output tsv
done

# Its enrolment proves the claims of the token for the token exchange, the nonce of 32 characters
# in the attested document, and the chain of that document's certificate.
prove_creation --region "$location" --account "${subscription:-SUBSCRIPTION}" \
  --tenant "${tenant:-TENANT}"

# The deployment stack has to remove the role assignments; the page lists what is left of them.
prove_stop

prove "a machine that is lost is replaced by one that enrols without a person"
note_machine
delete_machine
wait_for_other "$machine" 900 read_machine

prove_removal
