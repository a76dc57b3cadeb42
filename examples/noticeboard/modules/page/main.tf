variable "api" { type = string }
variable "folder" { type = string }
variable "port" { type = number }
variable "title" { type = string }

locals {
  html = <<-EOT
    <!doctype html>
    <title>${var.title}</title>
    <h1>${var.title}</h1>
    <p>Served by ${var.api}.</p>
  EOT
}

resource "terraform_data" "page" {
  input            = { folder = var.folder, port = var.port, html = local.html }
  triggers_replace = [var.folder, var.port, local.html]

  provisioner "local-exec" {
    command = "python3 \"${path.module}/serve.py\" start"
    environment = {
      FOLDER = self.input.folder
      PORT   = self.input.port
      HTML   = self.input.html
    }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "python3 \"${path.module}/serve.py\" stop"
    environment = { FOLDER = self.input.folder, PORT = self.input.port }
  }
}

output "url" { value = "http://127.0.0.1:${var.port}/" }
