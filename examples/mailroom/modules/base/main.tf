terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

variable "name" { type = string }
variable "postmaster" { type = string }

resource "aws_sns_topic" "alarms" {
  name = "${var.name}-alarms"
}

resource "aws_ssm_parameter" "postmaster" {
  name  = "/${var.name}/postmaster"
  type  = "String"
  value = var.postmaster
}

output "topic_arn" { value = aws_sns_topic.alarms.arn }
