variable "network" { type = string }
variable "size" { type = number }

resource "terraform_data" "cache" {
  input = { network = var.network, size = var.size }
}

output "address" { value = "cache.${var.network}.internal?size=${terraform_data.cache.output.size}" }
