variable "database" { type = string }
variable "cache" { type = string }
variable "store" { type = string }

resource "terraform_data" "api" {
  input = { database = var.database, cache = var.cache, store = var.store }
}

output "address" { value = "api on ${var.database}" }
