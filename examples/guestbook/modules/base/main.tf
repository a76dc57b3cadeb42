variable "name" { type = string }

resource "terraform_data" "base" {
  input = var.name
}

output "name" { value = terraform_data.base.output }
