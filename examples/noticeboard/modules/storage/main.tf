variable "folder" { type = string }
variable "network" { type = string }

resource "terraform_data" "store" {
  input = { path = "${var.folder}/store", network = var.network }

  provisioner "local-exec" {
    command     = "mkdir -p \"$STORE\""
    environment = { STORE = self.input.path }
  }
}

output "path" { value = terraform_data.store.output.path }
