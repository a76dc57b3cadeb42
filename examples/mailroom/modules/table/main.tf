terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

variable "name" { type = string }
variable "queue_arn" { type = string }

resource "aws_dynamodb_table" "letters" {
  name         = "${var.name}-letters"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "letter"

  attribute {
    name = "letter"
    type = "S"
  }

  tags = { queue = var.queue_arn }
}

output "name" { value = aws_dynamodb_table.letters.name }
