variable "network" { type = string }
variable "password" {
  type      = string
  sensitive = true
}

resource "terraform_data" "database" {
  input = { network = var.network, fingerprint = sha256(var.password) }
}

output "address" { value = "db.${var.network}.internal" }
