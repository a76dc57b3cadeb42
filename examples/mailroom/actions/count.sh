#!/bin/sh
# The AWS CLI finds the credentials of the job's role by itself.
set -eu
exec aws sqs get-queue-attributes --queue-url "$QUEUE" --output text \
  --query Attributes.ApproximateNumberOfMessages --attribute-names ApproximateNumberOfMessages
