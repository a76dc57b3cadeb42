variable "visitors" { type = number }

locals {
  replicas = max(1, min(5, ceil(var.visitors / 100)))
}

resource "terraform_data" "sizing" {
  input = { replicas = local.replicas, memory = "${64 * local.replicas}Mi" }
}

output "replicas" { value = terraform_data.sizing.output.replicas }
output "memory" { value = terraform_data.sizing.output.memory }
