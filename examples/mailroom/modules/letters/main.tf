terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

variable "name" { type = string }
variable "retention_days" { type = number }

resource "aws_sqs_queue" "lost" {
  name                      = "${var.name}-lost"
  message_retention_seconds = 14 * 86400
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue" "letters" {
  name                      = "${var.name}-letters"
  message_retention_seconds = var.retention_days * 86400
  sqs_managed_sse_enabled   = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.lost.arn
    maxReceiveCount     = 5
  })
}

resource "aws_dynamodb_table" "delivered" {
  name         = "${var.name}-delivered"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "letter"

  attribute {
    name = "letter"
    type = "S"
  }
}

output "queue_url" { value = aws_sqs_queue.letters.url }
output "table" { value = aws_dynamodb_table.delivered.name }
