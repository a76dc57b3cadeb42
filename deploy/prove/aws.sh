#!/usr/bin/env bash
# Proves in a real AWS account what no test can prove without one.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
CLOUD=aws
FETCH="Fetch the files" CREATE="Create the stack" REMOVE="Remove the Stack"
account="" region=eu-west-1
# shellcheck source=deploy/prove/lib.sh
. "$HERE/lib.sh"

describe_options() {
  printf '  --account ID     the account; the AWS command line has to be signed in to it\n'
  printf '  --region REGION  the region; default: %s\n' "$region"
}

take_option() {
  case "$1" in
    --account) account="$2" ;;
    --region) region="$2" ;;
    *) return 1 ;;
  esac
}

list_machines() {
  aws ec2 describe-instances --region "$region" --output text \
    --filters "Name=tag:exclave:install,Values=$(find_id install.json id)" \
    "Name=instance-state-name,Values=pending,running,shutting-down,stopping" \
    --query 'Reservations[].Instances[].InstanceId'
}

count_sessions() {
  aws cloudtrail lookup-events --region "$region" --output text \
    --lookup-attributes AttributeKey=EventName,AttributeValue=AssumeRole \
    --query "length(Events[?contains(CloudTrailEvent, 'exclave-exe_')])"
}

terminate_machine() {
  run aws ec2 terminate-instances --region "$region" --instance-ids "${machine:-MACHINE}"
}

read_options "$@"
require "$account"
need aws
begin

prove "the AWS command line is signed in to the right account"
run aws sts get-caller-identity --query Account --output text

prove_creation --region "$region" --account "${account:-ACCOUNT}"

prove "AWS notes the id of the job as the source identity of each session; it may lag a while"
run count_sessions

prove_stop

prove "CloudFormation keeps on working when the guard had more versions than IAM stores"
for _ in 1 2 3; do
  paste "Stop everything"
  paste "Start again"
done
wait_for active 900 read_stack_state

prove "a machine that is lost is replaced by one that enrols without a person"
note_machine
terminate_machine
wait_for_other "$machine" 900 read_machine

prove "a break-glass role comes with its end, and goes"
paste "Switch on the break-glass role Rescue"
paste "End break-glass"

prove_removal
