variable "name" { type = string }

resource "terraform_data" "network" {
  input = "net-${var.name}"
}

output "id" { value = terraform_data.network.output }
