terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

data "aws_caller_identity" "me" {}
data "aws_regions" "all" {}

output "who" { value = data.aws_caller_identity.me.arn }
output "regions" { value = length(data.aws_regions.all.names) }
