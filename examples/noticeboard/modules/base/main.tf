variable "folder" { type = string }
variable "name" { type = string }

resource "terraform_data" "folder" {
  input = var.folder

  provisioner "local-exec" {
    command     = "mkdir -p \"$FOLDER\""
    environment = { FOLDER = self.input }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "rm -rf \"$FOLDER\""
    environment = { FOLDER = self.input }
  }
}

output "folder" { value = terraform_data.folder.output }
output "name" { value = var.name }
